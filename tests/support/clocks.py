"""Processes whose clocks are wrong: libfaketime, installed with the system's packages where that is possible."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

LIBRARY = "libfaketimeMT.so.1"
ABSENT = "NOT TESTED with wrong clocks: the package faketime is not there and cannot be installed"


def wrong_by(offset: str) -> dict[str, str]:
    """The environment of a process whose clock is wrong by `offset` (`+60`, in seconds); its timers run as always.

    Skips the test where that cannot be had, and fails it with CI=true.
    """
    library = _library()
    if library is None and os.environ.get("CI", "").lower() == "true":
        pytest.fail(ABSENT)
    if library is None:
        pytest.skip(ABSENT)
    return {"LD_PRELOAD": str(library), "FAKETIME": offset, "FAKETIME_DONT_FAKE_MONOTONIC": "1"}


@cache
def _library() -> Path | None:
    return _found() or (_installed() if os.geteuid() == 0 and shutil.which("apt-get") else None)


def _found() -> Path | None:
    folders = (*Path("/usr/lib").glob("*/faketime"), Path("/usr/lib/faketime"), Path("/usr/local/lib/faketime"))
    return next((folder / LIBRARY for folder in folders if (folder / LIBRARY).exists()), None)


def _installed() -> Path | None:
    command = ["apt-get", "install", "-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300", "faketime"]
    subprocess.run(command, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"}, capture_output=True, check=False)
    return _found()
