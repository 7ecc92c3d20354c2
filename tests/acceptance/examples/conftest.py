"""Which of the examples' tests `make test` runs on which backend."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.support.servers.brokers import KIND_OF


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The cases differ in templates and handlers, which know no backend: on others than the default one they are left
    to `make test-servers`, while every example runs on each backend with the input that it ships. Of what a broker
    carries the second server knows nothing: there the cases run on the default backend and in memory, which asks the
    database what every broker asks it."""
    cases = [item for item in items if item.name.startswith("test_a_workflow_ends_as_expected[")]
    for case in cases:
        if _parameters(case)["app"] != "pgmq":
            case.add_marker(pytest.mark.servers)
    repeated = {
        case for case in cases if _parameters(case)["app"] in KIND_OF and _parameters(case)["server"] == "server"
    }
    items[:] = [item for item in items if item not in repeated]
    config.hook.pytest_deselected(items=list(repeated))


def _parameters(case: pytest.Item) -> Mapping[str, object]:
    found: Mapping[str, object] = case.callspec.params  # type: ignore[attr-defined]
    return found
