"""Today's handlers on recorded inputs: each difference with its place; nothing runs that must not run again."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import tasker
from tasker.cli.main import cli
from tasker.errors import PermanentError, RetryableError, UsageError
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.simulation.replaying import Replay, replay
from tasker.step_handler import StepHandler
from tasker.template import compile_text
from tasker.template.plan import Plan
from tasker.types import StepContext
from tasker.views.as_of import report_at
from tasker.views.task_lists import TransitionDetail
from tasker.views.tasks import TaskReport

TEMPLATE = """
name: replayed
namespace: replays
version: 1.0.0
steps:
  - {name: price, handler: shop.price, effect: pure, inputs: {amount: "${input.amount}"}}
  - {name: charge, dependencies: [price], handler: shop.charge, retry: {max_attempts: 3, backoff_base_ms: 1}}
"""
Ran = tuple[Plan, TaskReport, list[TransitionDetail]]


class Price(StepHandler):
    handler_name = "shop.price"
    factor = 2

    def call(self, context: StepContext) -> Any:
        return self.success({"total": context.input_data["amount"] * self.factor, "lines": [{"tax": 1}]})


class Charge(StepHandler):
    handler_name = "shop.charge"
    late = RetryableError("late", error_code="L1")

    def call(self, context: StepContext) -> Any:
        if context.retry_count == 0:
            raise self.late
        return self.success({"charged": context.dependency_results["price"]["total"]})


def registry_of(*handlers: type[StepHandler]) -> HandlerRegistry:
    registry = HandlerRegistry()
    for handler in handlers:
        registry.register(handler.handler_name, handler)
    return registry


@pytest.fixture(scope="module")
def ran(module_database_url: str) -> Ran:
    """A task that ran with the handlers above."""

    async def run() -> Ran:
        (plan,) = compile_text(TEMPLATE).plans
        async with tasker.App(module_database_url, registry=registry_of(Price, Charge)) as app:
            report = await app.run(plan, {"amount": 7}, timeout=60)
            return plan, report, list(await app.tasks.history(report.task_uuid))

    return asyncio.run(run())


def lines_of(done: Replay) -> dict[tuple[str, int], tuple[str, ...]]:
    return {(each.step, each.attempt): each.differences for each in done.attempts}


def test_equal_handlers_replay_alike_attempt_by_attempt(ran: Ran) -> None:
    done = replay(*ran, registry_of(Price, Charge), allow_effects=True)
    assert lines_of(done) == {("price", 1): (), ("charge", 1): (), ("charge", 2): ()}


def test_handler_without_a_word_about_effects_is_not_called(ran: Ran) -> None:
    class Forbidden(Charge):
        def call(self, context: StepContext) -> Any:
            raise AssertionError("it was called")

    done = replay(*ran, registry_of(Price, Forbidden))
    assert list(lines_of(done)) == [("price", 1)]
    assert "--allow-effects" in done.skipped["charge"]


def test_differences_are_named_by_their_places_and_later_steps_read_what_was(ran: Ran) -> None:
    class Dearer(Price):
        def call(self, context: StepContext) -> Any:
            return self.success({"total": 21, "lines": [{"tax": 2}], "new": None})

    class Impatient(Charge):
        late = PermanentError("late", error_code="L2")

    done = replay(*ran, registry_of(Dearer, Impatient), allow_effects=True)
    assert lines_of(done) == {
        ("price", 1): ("lines[0].tax: was 1, is now 2", "total: was 14, is now 21", "new: was missing, is now None"),
        ("charge", 1): (
            "error_type: was 'retryable_error', is now 'permanent_error'",
            "error_code: was 'L1', is now 'L2'",
            "retryable: was True, is now False",
        ),
        ("charge", 2): (),
    }


def test_ignored_places_do_not_count(ran: Ran) -> None:
    class Dearer(Price):
        factor = 3

    done = replay(*ran, registry_of(Dearer, Charge), steps=["price"], ignore=["price.total"])
    assert lines_of(done) == {("price", 1): ()}


def test_ignored_place_of_an_unknown_step_is_refused(ran: Ran) -> None:
    with pytest.raises(UsageError, match=r"'prise.total' to ignore is no place in a result") as refused:
        replay(*ran, registry_of(Price, Charge), ignore=["prise.total"])
    assert "price" in (refused.value.hint or "")


def test_failure_in_place_of_a_result_is_shown(ran: Ran) -> None:
    class Broken(Price):
        def call(self, context: StepContext) -> Any:
            raise PermanentError("no price list")

    done = replay(*ran, registry_of(Broken, Charge), steps=["price"])
    assert lines_of(done)[("price", 1)] == ("was a result, is now the failure permanent_error: no price list",)


class Asks(Charge):
    uses = ("bank",)

    def call(self, context: StepContext) -> Any:
        if context.retry_count == 0:
            raise self.late
        return self.success({"charged": context.resource("bank").charge()})


class FakeBank:
    def charge(self) -> int:
        return 15


def test_handler_of_a_resource_is_called_with_a_fake_of_it(ran: Ran) -> None:
    registry = registry_of(Price, Asks)
    assert "--fakes has none" in replay(*ran, registry, allow_effects=True).skipped["charge"]
    done = replay(*ran, registry, fakes={"bank": FakeBank()})
    assert lines_of(done)[("charge", 2)] == ("charged: was 14, is now 15",)


HANDLERS = """
from tasker.step_handler import StepHandler

class Price(StepHandler):
    handler_name = "shop.price"
    def call(self, context):
        return self.success({"total": context.input_data["amount"] * FACTOR, "lines": [{"tax": 1}]})
"""


@pytest.mark.parametrize(("factor", "code"), [("2", 0), ("3", 1)])
def test_command_exits_with_1_if_an_outcome_differs(
    ran: Ran, module_database_url: str, tmp_path: Path, factor: str, code: int
) -> None:
    (tmp_path / "handlers.py").write_text(HANDLERS.replace("FACTOR", factor))
    task, place = ran[1].task_uuid, ("--database-url", module_database_url)
    done = CliRunner().invoke(cli, ["task", "replay", task, "--handlers", str(tmp_path), "--step", "price", *place])
    assert done.exit_code == code, done.output
    assert f"1 attempt replayed: {1 - code} the same, {code} differ" in done.output


def test_task_is_shown_as_it_was(ran: Ran) -> None:
    _, report, history = ran
    retry = next(row for row in history if row.step == "charge" and row.to_state == "waiting_for_retry")
    then = report_at(report, history, retry.at)
    assert (then.status, then.completed_at) == ("waiting_for_retry", None)
    assert {name: (step.state, step.attempts) for name, step in then.steps.items()} == {
        "price": ("complete", 1),
        "charge": ("waiting_for_retry", 1),
    }
    assert [*then.results] == ["price"]
    assert report_at(report, history, max(row.at for row in history)).status == report.status


def test_failures_and_results_of_later_are_not_shown(ran: Ran) -> None:
    _, report, history = ran
    start = report_at(report, history, report.created_at)
    assert (start.results, [step.failures for step in start.steps.values()]) == ({}, [(), ()])
    with pytest.raises(UsageError, match="did not exist"):
        report_at(report, history, report.created_at - timedelta(seconds=1))
