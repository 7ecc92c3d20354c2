"""The browser that tests of pages drive: Debian's Chromium, installed where that can be done."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import NoReturn

import pytest

VARIABLE = "TASKER_TEST_BROWSER"
NAMES = ("chromium", "chromium-browser", "google-chrome")
ABSENT = f"NOT TESTED in a browser: no program chromium, and {VARIABLE} does not name one"
INSTALL_SECONDS = 400
APT = ["apt-get", "-o", "DPkg::Lock::Timeout=300"]


def program() -> str | None:
    """The browser's program; installed first where there is none and it can be."""
    return _found() or _installed()


def _found() -> str | None:
    if declared := os.environ.get(VARIABLE):
        return declared
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def _installed() -> str | None:
    if not _can_install():
        return None
    for command in (["update", "-q"], ["install", "-y", "--no-install-recommends", "chromium", "fonts-dejavu-core"]):
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        limit = {"timeout": INSTALL_SECONDS}
        subprocess.run([*APT, *command], env=environment, capture_output=True, check=False, **limit)  # type: ignore[call-overload]
    return _found()


def _can_install() -> bool:
    return os.geteuid() == 0 and Path("/etc/debian_version").exists() and shutil.which("apt-get") is not None


def absent() -> list[str]:
    """The line that says so, where no browser can be had here."""
    return [] if _found() or _can_install() else [ABSENT]


def give_up() -> NoReturn:
    """Skip the running test, or fail it where everything must be there (CI=true)."""
    if os.environ.get("CI", "").lower() == "true":
        pytest.fail(ABSENT)
    pytest.skip(ABSENT)
