"""The page about execution modes: its template compiles, its handler runs, its failures exist."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import tasker.execution.attempt
from tasker.engine.exchange import Result
from tasker.json_values import as_stored
from tasker.step_handler import StepHandler
from tasker.template import compile_text
from tasker.types import StepContext, StepHandlerResult
from tests.unit.execution.bench import Bench

PAGE = (Path(__file__).parents[3] / "docs" / "execution-modes.md").read_text()


def blocks(language: str) -> list[str]:
    """What the page shows in that language."""
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def handler_on_the_page() -> type[StepHandler]:
    names: dict[str, Any] = {}
    exec("".join(blocks("python")), names)
    found: type[StepHandler] = names["Simulate"]
    return found


async def test_the_template_asks_for_what_the_text_says() -> None:
    plan, of_much = (compile_text(text).plans[0] for text in blocks("yaml"))

    limits = {step.name: (step.timeout_seconds, step.execution) for step in plan.steps}
    assert limits == {"fetch_prices": (10, None), "simulate": (600, "process")}
    assert [(step.execution, step.memory_mb) for step in of_much.steps] == [("process", 512)]


async def test_the_handler_finishes_when_nobody_stops_it(bench: Bench) -> None:
    end = await bench.run(handler_on_the_page())

    assert isinstance(end, Result)
    assert as_stored(end.success.encoded) == {"total": sum(range(1000))}


def test_the_handler_stops_when_it_is_told_to(bench: Bench) -> None:
    attempt = bench.attempt()
    attempt.cancel.set()
    context = StepContext.build(
        claim=attempt.claim,
        plan=attempt.plan,
        step=attempt.step,
        task_context={},
        dependency_results={},
        cancel_flag=attempt.cancel,
    )

    result = handler_on_the_page()().call(context)

    assert isinstance(result, StepHandlerResult)
    assert result.result == {"total": 0}


@pytest.mark.parametrize(
    "error_type", sorted(set(re.findall(r"`([a-z]+(?:_[a-z]+)+)`", PAGE.split("## What ends")[1])))
)
def test_every_failure_on_the_page_is_one_of_the_code(error_type: str) -> None:
    folder = Path(tasker.execution.attempt.__file__).parents[2]
    sources = "".join(path.read_text() for path in folder.rglob("*.py"))

    assert error_type in sources
