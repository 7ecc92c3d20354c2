"""Packages that import their names when they are asked for list all of them, and need nothing that they do not use."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

PACKAGES = (
    "tasker", "tasker.app", "tasker.types", "tasker.step_handler", "tasker.handlers.decorators",
    "tasker.client", "tasker.domain_events", "tasker.template",
)  # fmt: skip


@pytest.mark.parametrize("package", PACKAGES)
def test_dir_lists_what_a_package_offers(package: str) -> None:
    code = f"import {package}; print(*sorted(set({package}.__all__) - set(dir({package}))))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "\n"
    module = importlib.import_module(package)
    assert all(hasattr(module, name) for name in dir(module))


def test_contexts_of_tests_need_no_pytest() -> None:
    code = "import sys; sys.modules['pytest'] = None; from tasker.testing.contexts import step_context; step_context()"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
