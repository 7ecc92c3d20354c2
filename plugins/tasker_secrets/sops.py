"""Secrets in files that SOPS has encrypted: the program `sops` decrypts them."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tasker.errors import ConfigurationError
from tasker.secrets import Secret
from tasker_secrets.settings import Clock, ProviderSettings, utc_now

SHOWN = 300
"""Characters of the program's message that an error shows."""

KEYS = "program folder"


class SopsProvider:
    """Files as JSON: `sops:secrets.enc.yaml#database.password`. A file is decrypted again once it has changed."""

    def __init__(self, settings: Mapping[str, Any], now: Clock = utc_now) -> None:
        self._settings, self._now = ProviderSettings("sops", settings, KEYS), now
        self._program = self._settings.text("program", "sops") or ""
        self._folder = Path(self._settings.text("folder", ".") or "")
        self._read: dict[Path, tuple[tuple[int, int, int], str]] = {}

    def get(self, name: str) -> Secret:
        """Return the decrypted file as JSON. Raises `ConfigurationError`."""
        file = (self._folder / name).absolute()
        try:
            status = file.stat()
        except OSError as error:
            raise ConfigurationError(f"the file {file} cannot be read: {error.strerror}") from None
        version = (status.st_mtime_ns, status.st_size, status.st_ino)
        known = self._read.get(file)
        if known is None or known[0] != version:
            known = self._read[file] = version, self._decrypted(file)
        return Secret(known[1], self._settings.expires_at(self._now()))

    def _decrypted(self, file: Path) -> str:
        command = [self._program, "--decrypt", "--output-type", "json", str(file)]
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, timeout=self._settings.timeout, check=False
            )
        except FileNotFoundError:
            hint = "install sops, or write its path: program = ..."
            raise self._settings.error(f"the program {self._program!r} was not found", hint) from None
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"sops has not decrypted {file} within {self._settings.timeout:g} seconds") from None
        if done.returncode:
            lines = done.stderr.decode(errors="replace").split("\n")
            message = " ".join(line.strip() for line in lines if line.strip())[:SHOWN]
            raise ConfigurationError(f"sops cannot decrypt {file} (exit code {done.returncode}): {message}")
        return done.stdout.decode(errors="strict").strip()
