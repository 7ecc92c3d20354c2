"""The snippets of docs/handlers.md run, top to bottom, and what they define works."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tasker.registry import HandlerDefinition, ResolverChain
from tasker.step_handler import CheckpointYield
from tests.unit.handlers.support import context, worker_inputs

DOCS = Path(__file__).parents[3] / "docs" / "handlers.md"


@pytest.fixture(scope="module")
def defined() -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "docs_handlers"}
    for snippet in re.findall(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL):
        exec(compile(snippet, str(DOCS), "exec"), names)
    return names


def call(function: Any, **given: Any) -> Any:
    return function._handler_class().call(context(**given))


def test_functions_and_classes_of_the_guide_work(defined: dict[str, Any]) -> None:
    charged = call(defined["charge_card"], task_context={"card": "x"}, results={"validate_cart": {"total": 3}})
    assert charged.result == {"charged": 3, "card": "x"}
    ship = defined["ShipOrder"]()
    assert ship.call(context(results={"charge": charged.result}, config={"carrier": "DHL"})).result == {
        "carrier": "DHL"
    }
    assert ship.call(context()).retryable is False


def test_failures_of_the_guide_are_classified(defined: dict[str, Any]) -> None:
    assert call(defined["ask_bank"], task_context={"blocked": True}).error_code == "CARD_BLOCKED"
    assert call(defined["ask_bank"]).metadata["retry_after"] == 30


def test_the_long_work_of_the_guide_says_how_far_it_is(defined: dict[str, Any]) -> None:
    assert call(defined["import_customers"]).result == {"files": 2}


def test_the_decision_of_the_guide_routes(defined: dict[str, Any]) -> None:
    routed = call(defined["route_approval"], task_context={"amount": 5000})
    assert routed.result["decision_point_outcome"]["step_names"] == ["manager_approval"]


def test_the_batch_of_the_guide_resumes_and_loses_nothing(defined: dict[str, Any]) -> None:
    assert call(defined["analyze_rows"], task_context={"rows": 1000}).result["worker_count"] == 5
    checkpoint: dict[str, Any] | None = None
    yields = 0
    while True:
        try:
            result = call(defined["process_rows"], inputs=worker_inputs(200, 450), checkpoint=checkpoint)
            break
        except CheckpointYield as stop:
            yields += 1
            checkpoint = {"cursor": stop.cursor, "accumulated_results": stop.accumulated_results}
    assert (yields, result.result) == (2, {"items_processed": 250, "total": sum(range(200, 450))})


def test_the_resolver_of_the_guide_finds_its_handlers(defined: dict[str, Any]) -> None:
    chain = ResolverChain.default().add_resolver(defined["PaymentServices"]())
    assert isinstance(chain.resolve(HandlerDefinition("payment://x")), defined["ShipOrder"])
