"""Which of the examples' tests `make test` runs on which backend."""

from __future__ import annotations

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The cases differ in templates and handlers, which know no backend: on others than the default one they are left
    to `make test-servers`, while every example runs on each backend with the input that it ships."""
    for item in items:
        parameters = getattr(getattr(item, "callspec", None), "params", {})
        if item.name.startswith("test_a_workflow_ends_as_expected[") and parameters["app"] != "pgmq":
            item.add_marker(pytest.mark.servers)
