"""What a handler tells of a sensitive value goes nowhere: not into a failure, wherever it runs, and not into a log."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from typing import Any

import pytest

from tasker.execution.attempt.attempt import Attempt
from tasker.execution.attempt.settle import MOST_SECRETS, OutcomeRedactor
from tasker.handlers.claims import Failure
from tasker.handlers.copies import CopyOnRead
from tasker.logging.format import JsonFormatter, TextFormatter
from tasker.redaction import REDACTED
from tasker.step_handler import StepHandler
from tasker.template.plan import Plan
from tasker.types import StepContext, StepHandlerResult
from tests.unit.execution.bench import Bench, failure_of
from tests.unit.execution.modes import child_handlers

CARD, PIN = "4111222233334444", 987654
SENSITIVE = {"x-sensitive": True}


class Tells(StepHandler):
    """Logs and raises what it was given."""

    def call(self, context: StepContext) -> StepHandlerResult:
        card = context.get_input("card")
        logging.getLogger("shop").warning("paying with %s", card, extra={"fields": {"card": card}})
        raise ValueError(f"{card} was refused, its pin is {context.get_dependency_result('above')['pin']}")


class TakesOut(StepHandler):
    """Takes what is sensitive out of its copies before it tells of it."""

    def call(self, context: StepContext) -> StepHandlerResult:
        card, pin = context.input_data.pop("card"), context.get_dependency_result("above").pop("pin")
        logging.getLogger("shop").warning("paying with %s", card)
        raise ValueError(f"{card} was refused, its pin is {pin}")


class Answers(StepHandler):
    """Fails by a result."""

    async def call(self, context: StepContext) -> StepHandlerResult:
        card = context.get_input("card")
        return StepHandlerResult.failure(f"no {card}", "refused", error_code=card, metadata={"tried": [card]})


def marked(attempt: Attempt, context: dict[str, Any] | None = None) -> Attempt:
    """The same attempt of a template that marks the card of its input, and the pin of the step above."""
    above = replace(attempt.step, name="above", result_schema={"properties": {"pin": SENSITIVE}})
    schema = {"properties": {"card": SENSITIVE}}
    plan = Plan("shop", "orders", "1.0.0", (above, attempt.step), input_schema=schema)
    read = CopyOnRead.of(context or {"card": CARD})  # as a worker has them
    results = CopyOnRead.of({"above": {"pin": PIN}})
    return replace(attempt, plan=plan, task_context=read, dependency_results=results)


@pytest.mark.parametrize("execution", [None, "process"])
async def test_a_failure_that_is_raised_says_nothing_sensitive(bench: Bench, execution: str | None) -> None:
    handler = child_handlers.TellsItsCard if execution else Tells
    failure = failure_of(await bench.end(marked(bench.attempt(handler, execution=execution))))

    assert failure.message == f"{REDACTED} was refused, its pin is {REDACTED}"
    assert "raise ValueError" in failure.metadata["traceback"]
    assert not [secret for secret in (CARD, str(PIN)) if secret in str(failure)]


async def test_a_handler_that_has_taken_a_value_out_of_its_copy_says_nothing_sensitive(bench: Bench) -> None:
    failure = failure_of(await bench.end(marked(bench.attempt(TakesOut))))

    assert failure.message == f"{REDACTED} was refused, its pin is {REDACTED}"
    assert not [secret for secret in (CARD, str(PIN)) if secret in str(failure)]


async def test_results_without_a_mark_are_not_read_to_cover_what_is_told(bench: Bench) -> None:
    """A step may be below thousands of them."""
    read: list[str] = []

    def kept(name: str) -> Any:
        read.append(name)
        return {"pin": PIN}

    attempt = marked(bench.attempt(Tells))
    plan = replace(attempt.plan, steps=(*attempt.plan.steps, replace(attempt.step, name="other")))
    results = CopyOnRead({"above": None, "other": None}, kept)

    assert (
        OutcomeRedactor(replace(attempt, plan=plan, dependency_results=results)).over(f"it is {PIN}")
        == f"it is {REDACTED}"
    )
    assert read == ["above"]


async def test_a_failure_that_is_returned_says_nothing_sensitive(bench: Bench) -> None:
    failure = failure_of(await bench.end(marked(bench.attempt(Answers))))

    assert (failure.message, failure.error_code) == (f"no {REDACTED}", REDACTED)
    assert failure.metadata["tried"] == [REDACTED]


class AnswersWithType(StepHandler):
    """Fails by a result whose error type is a sensitive value."""

    async def call(self, context: StepContext) -> StepHandlerResult:
        return StepHandlerResult.failure("refused", context.get_input("card"))


async def test_error_type_that_is_a_sensitive_value_is_redacted(bench: Bench) -> None:
    failure = failure_of(await bench.end(marked(bench.attempt(AnswersWithType))))

    assert failure.error_type == REDACTED


class AnswersWithCode(StepHandler):
    """Fails by a result whose code has the digits of a sensitive value."""

    async def call(self, context: StepContext) -> StepHandlerResult:
        return StepHandlerResult.failure("no 1001", "refused", error_code="CARD_1001")


async def test_error_code_of_a_failure_is_stored_as_it_is(bench: Bench) -> None:
    failure = failure_of(await bench.end(marked(bench.attempt(AnswersWithCode), {"card": 1001})))

    assert (failure.message, failure.error_code) == (f"no {REDACTED}", "CARD_1001")


async def test_what_no_template_marks_is_told_as_it_is(bench: Bench) -> None:
    attempt = replace(bench.attempt(Answers), task_context={"card": CARD})

    assert failure_of(await bench.end(attempt)).message == f"no {CARD}"


@pytest.mark.parametrize("formatter", [TextFormatter, JsonFormatter])
async def test_a_line_that_a_handler_logs_says_nothing_sensitive(
    bench: Bench, caplog: pytest.LogCaptureFixture, formatter: type[logging.Formatter]
) -> None:
    lines: list[str] = []

    class Sink(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(self.format(record))

    sink = Sink()
    sink.setFormatter(formatter())
    logger = logging.getLogger("shop")
    logger.addHandler(sink)
    try:
        await bench.end(marked(bench.attempt(Tells)))
        logger.warning("after it %s", CARD)
    finally:
        logger.removeHandler(sink)

    during, after = lines
    assert f"paying with {REDACTED}" in during
    assert CARD not in during
    assert CARD in after
    if formatter is JsonFormatter:
        assert json.loads(during)["fields"] == {"card": REDACTED}


def test_where_there_are_too_many_values_to_look_for_nothing_of_a_failure_is_kept(bench: Bench) -> None:
    many = {"card": [f"card {number}" for number in range(MOST_SECRETS + 1)]}
    failure = OutcomeRedactor(marked(bench.attempt(Tells), many)).over(
        {"message": "card 7", "metadata": {"a": "card 8"}}
    )

    assert failure == {"message": REDACTED, "metadata": {"a": REDACTED}}


def test_outcome_with_one_of_too_many_values_is_withheld(bench: Bench) -> None:
    """The progress message and the cursor of a checkpoint are texts without a key."""
    many = {"card": [f"card {number}" for number in range(MOST_SECRETS + 1)]}
    redactor = OutcomeRedactor(marked(bench.attempt(Tells), many))
    failure = redactor.failure(Failure("no card 7", "refused", True, "card 8"))

    assert (failure.message, failure.error_code) == (REDACTED, REDACTED)
    assert (redactor.over("paid card 7"), redactor.over("paid 7 of 9")) == (REDACTED, "paid 7 of 9")
    assert redactor.over({"after": "card 10000"}) == {"after": REDACTED}
