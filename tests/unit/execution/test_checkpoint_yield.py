"""A yield saves the position and runs the handler again at once, in the same attempt."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tasker.engine.exchange import Result
from tasker.execution.attempt.attempt import AttemptCancelled, Checkpoint, ClaimLost, ClaimReleased
from tasker.handlers.copies import CopyOnRead
from tasker.json_values import VALUE_LIMIT_BYTES, as_stored
from tasker.step_handler import StepHandler, checkpoint_yield
from tasker.types import StepContext, StepHandlerResult
from tests.unit.execution.bench import Bench, Saver


class Counts(StepHandler):
    """Does ten items, yields after every four, and swallows every `Exception` on the way."""

    def call(self, context: StepContext) -> StepHandlerResult:
        start = context.checkpoint_cursor or 0
        done = (context.accumulated_results or {}).get("done", [])
        try:
            for item in range(start, 10):
                done.append(item)
                if len(done) % 4 == 0:
                    checkpoint_yield(item + 1, len(done), {"done": done})
        except Exception as error:
            return self.failure(str(error))
        return self.success({"done": done, "retry_count": context.retry_count})


class CountsAsync(Counts):
    async def call(self, context: StepContext) -> StepHandlerResult:  # type: ignore[override]
        return super().call(context)


@pytest.mark.parametrize("handler", [Counts, CountsAsync])
async def test_the_handler_goes_on_from_each_checkpoint_without_using_an_attempt(
    bench: Bench, handler: type[StepHandler]
) -> None:
    save = Saver()

    end = await bench.run(handler, save=save)

    assert isinstance(end, Result)
    assert as_stored(end.success.encoded) == {"done": list(range(10)), "retry_count": 0}
    assert [(saved.cursor, saved.items_processed) for saved in save.saved] == [(4, 4), (8, 8)]


class YieldsInGroups(StepHandler):
    """Yields from a task of a group in a group; `odd` fails beside it."""

    odd: BaseException | None = None

    async def call(self, context: StepContext) -> StepHandlerResult:
        if context.has_checkpoint():
            return self.success({"cursor": context.checkpoint_cursor})
        async with asyncio.TaskGroup() as outer:
            outer.create_task(self._in_a_group())
        return self.success({})

    async def _in_a_group(self) -> None:
        async with asyncio.TaskGroup() as inner:
            inner.create_task(self._yields())
            inner.create_task(self._waits())

    async def _yields(self) -> None:
        checkpoint_yield(1, 1)

    async def _waits(self) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            if self.odd is not None:
                raise self.odd


@pytest.mark.parametrize("execution", ["async", "thread"])
async def test_a_yield_from_a_task_of_a_group_is_one(bench: Bench, execution: str) -> None:
    end = await bench.run(YieldsInGroups, execution=execution)

    assert isinstance(end, Result)
    assert as_stored(end.success.encoded) == {"cursor": 1}


async def test_a_yield_beside_which_another_task_of_its_group_failed_is_a_failure(bench: Bench) -> None:
    class Fails(YieldsInGroups):
        odd = ValueError("beside it")

    save = Saver()
    failure = await bench.failure(Fails, save=save)

    assert failure.error_type == "handler_error"
    assert "beside it" in failure.message
    assert save.saved == []


async def test_the_history_of_a_checkpoint_reaches_the_handler(bench: Bench) -> None:
    seen: list[Any] = []

    class Handler(StepHandler):
        async def call(self, context: StepContext) -> StepHandlerResult:
            seen.append(context.checkpoint)
            if len(seen) < 3:
                checkpoint_yield({"page": len(seen)}, len(seen))
            return self.success({})

    await bench.run(Handler)

    assert [(found or {}).get("history") for found in seen] == [
        None,
        [{"cursor": {"page": 1}}],
        [{"cursor": {"page": 1}}, {"cursor": {"page": 2}}],
    ]


async def test_a_refused_checkpoint_means_that_the_step_is_lost(bench: Bench) -> None:
    calls: list[int] = []

    class Handler(StepHandler):
        async def call(self, context: StepContext) -> StepHandlerResult:
            calls.append(1)
            checkpoint_yield(1, 1)

    assert isinstance(await bench.run(Handler, save=Saver(refuse=True)), ClaimLost)
    assert len(calls) == 1


async def test_a_checkpoint_that_cannot_be_saved_fails_the_attempt_for_now(bench: Bench) -> None:
    async def save(_: Checkpoint) -> Mapping[str, Any] | None:
        raise ConnectionError("the database is gone")

    failure = await bench.failure(Counts, save=Saver(instead=save))

    assert (failure.error_type, failure.retryable) == ("checkpoint_save_failed", True)
    assert "the database is gone" in failure.message


async def test_saving_a_checkpoint_has_a_time_limit(bench: Bench) -> None:
    async def save(_: Checkpoint) -> Mapping[str, Any] | None:
        await asyncio.Event().wait()
        return {}

    bench.runner._checkpoint_timeout = 0.001
    failure = await bench.failure(Counts, save=Saver(instead=save))

    assert (failure.error_type, failure.retryable) == ("checkpoint_save_failed", True)
    assert "no answer within 0.001 seconds" in failure.message


async def test_a_checkpoint_that_is_not_json_is_a_permanent_failure_with_the_path(bench: Bench) -> None:
    save = Saver()

    class Handler(StepHandler):
        async def call(self, context: StepContext) -> StepHandlerResult:
            checkpoint_yield({"seen": {1, 2}}, 1)

    failure = await bench.failure(Handler, save=save)

    assert (failure.error_type, failure.retryable) == ("not_storable", False)
    assert "$.cursor.seen" in failure.message
    assert save.saved == []


@pytest.mark.parametrize(
    ("cursor", "items", "path", "error_type"),
    [
        (1, 10**5000, "$.items_processed", "not_storable"),
        ("x" * (VALUE_LIMIT_BYTES - 60), 10**60, "$", "result_too_large"),
    ],
    ids=["thousands of digits", "a position at the edge of what may be stored"],
)
@pytest.mark.parametrize("execution", [None, "async"])
async def test_a_position_that_cannot_be_stored_is_a_permanent_failure_whatever_in_it_is_odd(
    bench: Bench, execution: str | None, cursor: Any, items: int, path: str, error_type: str
) -> None:
    class Handler(StepHandler):
        def call(self, context: StepContext) -> StepHandlerResult:
            checkpoint_yield(cursor, items)

    class AsyncHandler(Handler):
        async def call(self, context: StepContext) -> StepHandlerResult:  # type: ignore[override]
            checkpoint_yield(cursor, items)

    failure = await bench.failure(AsyncHandler if execution else Handler, execution=execution)

    assert (failure.error_type, failure.retryable) == (error_type, False)
    assert failure.metadata["path"] == path
    assert "the checkpoint of" in failure.message


async def test_what_is_saved_is_what_was_accumulated_then_in_plain_types(bench: Bench) -> None:
    save, counts = Saver(), Counter(a=1)

    class Handler(StepHandler):
        async def call(self, context: StepContext) -> StepHandlerResult:
            if context.has_checkpoint():
                return self.success(context.accumulated_results)
            asyncio.get_running_loop().call_soon(counts.update, "a")
            checkpoint_yield((1, 2), 1, counts)

    end = await bench.run(Handler, save=save)

    assert isinstance(end, Result)
    assert as_stored(end.success.encoded) == {"a": 1}
    assert (save.saved[0].cursor, type(save.saved[0].accumulated_results)) == ([1, 2], dict)


async def test_each_run_has_the_whole_timeout(bench: Bench) -> None:
    turns: list[asyncio.TimerHandle] = []

    class Handler(StepHandler):
        async def call(self, context: StepContext) -> StepHandlerResult:
            loop = asyncio.get_running_loop()
            pending = [handle for handle in loop._scheduled if not handle.cancelled()]  # type: ignore[attr-defined]
            turns.append(max(pending, key=lambda handle: handle.when()))
            if len(turns) < 3:
                checkpoint_yield(len(turns), len(turns))
            return self.success({})

    await bench.run(Handler, timeout_seconds=1000.0)

    ends = [handle.when() for handle in turns]
    assert ends == sorted(ends)
    assert len(set(ends)) == 3


async def test_a_cancel_while_the_checkpoint_is_saved_lets_the_save_finish_and_runs_nothing_more(
    bench: Bench,
) -> None:
    finished: list[Checkpoint] = []

    async def save(position: Checkpoint) -> Mapping[str, Any] | None:
        attempt.cancel.set()
        await asyncio.sleep(0)
        finished.append(position)
        return {"cursor": position.cursor}

    attempt = bench.attempt(Counts, save=Saver(instead=save))

    assert isinstance(await bench.end(attempt), AttemptCancelled)
    assert [position.cursor for position in finished] == [4]


async def test_a_handler_that_is_released_may_save_its_position(bench: Bench) -> None:
    save = Saver()
    started = asyncio.Event()

    class Handler(StepHandler):
        async def call(self, context: StepContext) -> StepHandlerResult:
            started.set()
            try:
                await asyncio.Event().wait()
            finally:
                checkpoint_yield(42, 42)

    attempt = bench.attempt(Handler, save=save)
    running = asyncio.ensure_future(bench.end(attempt))
    await started.wait()

    attempt.cancel.set(ClaimReleased)

    assert isinstance(await running, ClaimReleased)
    assert [position.cursor for position in save.saved] == [42]


async def test_a_yield_writes_its_log_lines(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "tasker.execution"):
        await bench.run(Counts)

    saying, saved = caplog.messages[:2]
    assert saying.startswith("checkpoint_yield_step_event correlation_id=")
    assert " step_uuid=01900000-0000-7000-8000-000000000001 " in saying
    assert saying.endswith(" cursor=4 items_processed=4")
    assert saved == saying.replace("yield_step_event", "saved").replace(
        "cursor=4 items_processed=4", "history_length=1"
    )


@pytest.mark.parametrize("positions", [1, 3], ids=["one position", "a circle of three"])
async def test_a_handler_whose_checkpoints_lead_nowhere_ends_in_an_error_that_says_so(
    bench: Bench, positions: int
) -> None:
    save = Saver()

    class Handler(StepHandler):
        async def call(self, context: StepContext) -> StepHandlerResult:
            checkpoint_yield({"page": len(save.saved) % positions}, 7)

    failure = await bench.failure(Handler, save=save)

    assert (failure.error_type, failure.retryable) == ("checkpoint_without_progress", False)
    assert "20 in a row repeat earlier ones" in failure.message
    assert "after 7 items" in failure.message
    assert len(save.saved) == positions + 19


async def test_a_step_may_come_to_an_old_position_again_as_long_as_it_goes_on(bench: Bench) -> None:
    save = Saver()

    class Handler(StepHandler):
        async def call(self, context: StepContext) -> StepHandlerResult:
            done = len(save.saved)
            if done == 200:
                return self.success({"done": done})
            checkpoint_yield(done // 15, done // 15)

    end = await bench.run(Handler, save=save)

    assert isinstance(end, Result)
    assert end.success.encoded.text == '{"done":200}'


class TakesItApart(StepHandler):
    """Takes everything out of what it was given, and yields the first time."""

    def call(self, context: StepContext) -> StepHandlerResult:
        given = (
            context.get_input("order")["lines"],
            context.get_dependency_result("above")["rows"],
            context.step_inputs["cursor"]["ids"],
        )
        seen = [list(each) for each in given]
        for each in given:
            each.clear()
        if not context.has_checkpoint():
            checkpoint_yield(1, 1)
        return self.success({"seen": seen})


class TakesItApartAsync(TakesItApart):
    async def call(self, context: StepContext) -> StepHandlerResult:  # type: ignore[override]
        return super().call(context)


@pytest.mark.parametrize("execution", [None, "process"])
@pytest.mark.parametrize("handler", [TakesItApart, TakesItApartAsync])
async def test_after_a_yield_a_handler_reads_what_it_read_before_whatever_it_made_of_that(
    bench: Bench, handler: type[StepHandler], execution: str | None
) -> None:
    attempt = bench.attempt(handler, inputs={"cursor": {"ids": [3]}}, execution=execution)
    given: Any = {"order": {"lines": [1]}}, {"above": {"rows": [2]}}
    lazily = [CopyOnRead.of(each) for each in given]

    end = await bench.end(replace(attempt, task_context=lazily[0], dependency_results=lazily[1]))

    assert isinstance(end, Result)
    assert as_stored(end.success.encoded) == {"seen": [[1], [2], [3]]}


async def test_the_line_of_a_yield_says_nothing_sensitive(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    class Handler(StepHandler):
        async def call(self, context: StepContext) -> StepHandlerResult:
            if not context.has_checkpoint():
                checkpoint_yield({"after": context.get_input("card")}, 1)
            return self.success({})

    attempt = bench.attempt(Handler)
    schema = {"properties": {"card": {"x-sensitive": True}}}
    plan = replace(attempt.plan, input_schema=schema)
    with caplog.at_level(logging.INFO, logger="tasker"):
        await bench.end(replace(attempt, plan=plan, task_context={"card": "4111222233334444"}))

    assert "checkpoint_yield_step_event" in caplog.text
    assert "4111222233334444" not in str([record.__dict__ for record in caplog.records])
