"""Looks for secrets in the files of the repository, and for known vulnerabilities of what is installed.

    python -m tools.audit

Secrets are looked for without a network. Advisories are asked for once a day and for what is installed, and where they
cannot be asked for one line says so.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from hashlib import sha256
from importlib.metadata import distributions, version
from pathlib import Path
from time import time
from typing import Any

import httpx

ROOT = Path(__file__).parents[1]
ADVISORIES = "https://pypi.org/pypi/pip-audit/{}/json"
"""Where pip-audit asks about a package: about itself, to learn whether there is an answer."""
ASK_SECONDS, AUDIT_SECONDS, FRESH_SECONDS = 3.0, 60, 86_400
CLEAN, FOUND = 0, 200
"""Exit codes of the scanner of secrets."""


class NotAsked(Exception):
    """Why there are no advisories."""


def main() -> int:
    """Print what was found; returns 1 when that is something."""
    found = secrets(ROOT)
    try:
        found += advisories(Path(sys.prefix) / ".audited")
    except NotAsked as reason:
        print(f"KNOWN VULNERABILITIES NOT LOOKED FOR: {reason}")
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


def secrets(folder: Path) -> list[str]:
    """Where in the files of a folder, but those that git ignores, something stands that looks like a secret."""
    scanner, cache = Path(sys.executable).with_name("kingfisher"), Path(sys.prefix) / ".kingfisher"
    command = [str(scanner), "scan", str(folder), "--quiet", "--redact", "--format", "json"]
    offline = ["--no-validate", "--no-update-check", "--git-history", "none", "--exclude", ".venv"]
    command += [*offline, "--rule-cache-dir", str(cache)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode not in (CLEAN, FOUND):
        return [f"the scan for secrets failed: {ran.stderr.strip() or ran.stdout.strip()}"]
    findings = [each for line in ran.stdout.splitlines() for each in json.loads(line).get("findings") or ()]
    return [f"{each['finding']['path']}:{each['finding']['line']}: {each['rule']['description']}" for each in findings]


def advisories(stamp: Path) -> list[str]:
    """What is known about installed packages; where there was nothing, `stamp` says so for a day.

    Raises `NotAsked`.
    """
    installed = _installed()
    if stamp.exists() and stamp.read_text() == installed and time() - stamp.stat().st_mtime < FRESH_SECONDS:
        return []
    _require_answers()
    found = list(complaints(_audited()))
    if not found:
        stamp.write_text(installed)
    return found


def complaints(packages: Sequence[dict[str, Any]]) -> Iterator[str]:
    """A line for each advisory. Raises `NotAsked` where nobody knew any of the packages."""
    if all("skip_reason" in package for package in packages):
        raise NotAsked("the index answers, and knows none of the installed packages")
    for package in packages:
        for advisory in package.get("vulns", ()):
            fixed = " or ".join(advisory["fix_versions"]) or "no release yet"
            yield f"{package['name']} {package['version']} has {advisory['id']}; mended by {fixed}"


def _installed() -> str:
    names = sorted(f"{each.name}=={each.version}" for each in distributions())
    return sha256("\n".join(names).encode()).hexdigest()


def _require_answers() -> None:
    try:
        answer = httpx.get(ADVISORIES.format(version("pip-audit")), timeout=ASK_SECONDS)
        known = answer.status_code == httpx.codes.OK and "vulnerabilities" in answer.json()
    except (httpx.HTTPError, ValueError) as error:
        raise NotAsked(f"no network ({type(error).__name__})") from None
    if not known:
        raise NotAsked(f"no advisories at {answer.url.host} (status {answer.status_code})")


def _audited() -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "pip_audit", "--skip-editable", "--progress-spinner", "off", "--format", "json"]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=AUDIT_SECONDS)
        found: list[dict[str, Any]] = json.loads(ran.stdout)["dependencies"]
    except subprocess.TimeoutExpired:
        raise NotAsked(f"no answer within {AUDIT_SECONDS} seconds") from None
    except ValueError:
        raise NotAsked((ran.stderr.strip() or "pip-audit answered nothing").splitlines()[-1]) from None
    return found


if __name__ == "__main__":
    sys.exit(main())
