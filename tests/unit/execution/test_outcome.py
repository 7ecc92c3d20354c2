"""Whatever a handler returns or raises becomes a result that can be stored, or a failure that says why."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from tasker.engine.exchange import Result
from tasker.errors import PermanentError, RateLimitError
from tasker.execution.attempt.attempt import ClaimReleased
from tasker.json_values import as_stored
from tasker.step_handler import StepHandler, step_handler
from tasker.types import StepContext, StepHandlerCallResult, StepHandlerResult
from tests.unit.execution.bench import Bench

SCHEMA = {"type": "object", "properties": {"total": {"type": "number"}}, "required": ["total"]}


def returning(value: Any) -> type[StepHandler]:
    """An async handler that returns the value."""

    class Returns(StepHandler):
        async def call(self, context: StepContext) -> Any:
            return value

    return Returns


def raising(error: BaseException) -> type[StepHandler]:
    """An async handler that raises the error."""

    class Raises(StepHandler):
        async def call(self, context: StepContext) -> StepHandlerResult:
            raise error

    return Raises


async def test_an_exception_is_a_retryable_failure_with_its_class_and_traceback(bench: Bench) -> None:
    failure = await bench.failure(raising(LookupError("no such order")))

    assert (failure.message, failure.error_type, failure.retryable) == ("no such order", "handler_error", True)
    assert failure.metadata["exception_type"] == "LookupError"
    assert "test_outcome.py" in failure.metadata["traceback"]
    assert "Raises.call" in (failure.handler or "")


async def test_an_error_says_itself_whether_and_when_it_is_tried_again(bench: Bench) -> None:
    permanent = await bench.failure(raising(PermanentError("card expired", error_code="EXPIRED")))
    limited = await bench.failure(raising(RateLimitError("slow down", retry_after=12)))

    assert (permanent.retryable, permanent.error_code) == (False, "EXPIRED")
    assert (limited.retryable, limited.retry_after) == (True, 12.0)


async def test_a_returned_failure_keeps_its_fields(bench: Bench) -> None:
    returned = StepHandlerResult.failure("declined", "payment_error", False, {"retry_after": 3, "bank": "b"}, "D1")

    failure = await bench.failure(returning(returned))

    assert (failure.message, failure.error_type, failure.error_code) == ("declined", "payment_error", "D1")
    assert (failure.retryable, failure.retry_after, failure.metadata["bank"]) == (False, 3.0, "b")


@pytest.mark.parametrize("value", [None, {"total": 1}, 7, "done"])
async def test_a_wrong_return_type_is_a_permanent_failure(bench: Bench, value: Any) -> None:
    failure = await bench.failure(returning(value))

    assert (failure.error_type, failure.retryable) == ("invalid_handler_result", False)
    assert "expected a StepHandlerResult" in failure.message


@pytest.mark.parametrize(
    ("result", "path"),
    [
        ({"orders": [{"at": datetime(2026, 1, 1, tzinfo=UTC)}]}, "$.orders[0].at"),
        ({"rate": math.nan}, "$.rate"),
        ({"name": "a\0b"}, "$.name"),
        ({"name": "\ud800"}, "$.name"),
        ({"by_id": {1: "x"}}, "$.by_id"),
        ({1: 2}, "$"),
    ],
)
@pytest.mark.parametrize("made", [StepHandlerResult.success, lambda r: StepHandlerCallResult(success=True, result=r)])
async def test_a_result_that_is_not_json_is_a_permanent_failure_with_the_path(
    bench: Bench, made: Callable[[Any], Any], result: dict[str, Any], path: str
) -> None:
    failure = await bench.failure(lambda _: made(result))

    assert (failure.error_type, failure.retryable) == ("not_storable", False)
    assert failure.metadata["path"] == path
    assert path in failure.message


async def test_a_result_that_is_too_large_is_a_permanent_failure(bench: Bench) -> None:
    failure = await bench.failure(returning(StepHandlerResult.success({"data": "x" * 5_000_000})))

    assert (failure.error_type, failure.retryable) == ("result_too_large", False)


@pytest.mark.parametrize(("metadata", "path"), [({"at": object()}, "$.at"), ({1: 2}, "$")])
async def test_metadata_that_is_not_json_is_a_permanent_failure_with_the_path(
    bench: Bench, metadata: dict[str, Any], path: str
) -> None:
    failure = await bench.failure(lambda _: StepHandlerResult.success({}, metadata))

    assert failure.error_type == "not_storable"
    assert f"metadata {path}:" in failure.message


async def test_the_metadata_of_a_failure_may_hold_anything(bench: Bench) -> None:
    failure = await bench.failure(lambda _: StepHandlerResult.failure("no stock", "out_of_stock", False, {1: 2}))  # type: ignore[dict-item]

    assert (failure.message, failure.error_type, failure.retryable) == ("no stock", "out_of_stock", False)


async def test_a_result_against_result_schema_is_a_permanent_failure_with_the_path(bench: Bench) -> None:
    handler = returning(StepHandlerResult.success({"total": "five"}))

    failure = await bench.failure(handler, result_schema=SCHEMA)

    assert (failure.error_type, failure.retryable) == ("result_schema_violation", False)
    assert failure.metadata["problems"][0]["path"] == "$.total"
    assert "$.total" in failure.message


async def test_a_result_that_fits_result_schema_is_a_result(bench: Bench) -> None:
    end = await bench.run(returning(StepHandlerResult.success({"total": 5})), result_schema=SCHEMA)

    assert isinstance(end, Result)
    assert end.success.encoded.text == '{"total":5}'


async def test_a_large_result_is_warned_about(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    end = await bench.run(returning(StepHandlerResult.success({"data": "x" * 300_000})))

    assert isinstance(end, Result)
    assert end.success
    (line,) = [line for line in caplog.messages if line.startswith("step_result_large correlation_id=")]
    assert " step_uuid=01900000-0000-7000-8000-000000000001 " in line
    assert " size=3000" in line


async def test_the_report_of_a_failure_can_always_be_stored(bench: Bench) -> None:
    error = PermanentError("bad byte \0 and \ud800", metadata={"row": 3, "raw": b"x"}, error_code="E\0")

    failure = await bench.failure(raising(error))

    assert failure.message == "bad byte \\0 and \\ud800"
    assert failure.error_code == "E\\0"
    assert failure.metadata["row"] == 3
    assert "raw" not in failure.metadata
    assert failure.metadata["left_out"][0].startswith("$.raw:")


async def test_an_endless_message_is_cut_and_says_so(bench: Bench) -> None:
    failure = await bench.failure(raising(ValueError("x" * 50_000)))

    assert len(failure.message) < 11_000
    assert failure.message.endswith("... (40000 more characters)")


@pytest.mark.parametrize("kind", [RuntimeError, SystemExit, GeneratorExit, asyncio.CancelledError])
@pytest.mark.parametrize("execution", ["async", "thread"])
async def test_an_exception_whose_text_fails_is_still_a_failure(
    bench: Bench, kind: type[BaseException], execution: str
) -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise kind("no text")

    failure = await bench.failure(raising(Mute()), execution=execution)

    assert (failure.error_type, failure.retryable) == ("handler_error", True)
    assert f"Mute, which cannot be shown: asking it raised {kind.__name__}" in failure.message
    assert bench.runner.leaked_threads == 0


async def test_a_functional_handler_returns_plain_values(bench: Bench) -> None:
    @step_handler("double")
    async def double(context: StepContext) -> dict[str, int]:
        return {"total": context.input_data["amount"] * 2}

    end = await bench.run(double)

    assert isinstance(end, Result)
    assert as_stored(end.success.encoded) == {"total": 10}


async def test_a_step_that_nobody_here_resolves_is_given_back(bench: Bench) -> None:
    end = await bench.end(bench.attempt(callable="unknown_handler"))

    assert isinstance(end, ClaimReleased)
    assert "unknown_handler" in end.reason
