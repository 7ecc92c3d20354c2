from __future__ import annotations

import pickle
from datetime import timedelta
from typing import Any

import pytest

from tasker.batch_processing import BatchableHandler
from tasker.errors import ValidationError
from tasker.step_handler import AgainIn, CheckpointYield, again_in, checkpoint_yield
from tasker.types import BatchWorkerContext, StepContext, StepHandlerResult
from tests.unit.handlers.support import context, worker_inputs


class Careful(BatchableHandler):
    def call(self, context: StepContext) -> StepHandlerResult:
        try:
            self.checkpoint_yield(cursor=10, items_processed=10, accumulated_results={"sum": 1})
        except Exception as error:
            return self.failure(str(error))


class Returning(BatchableHandler):
    def call(self, context: StepContext) -> StepHandlerResult:
        return self.checkpoint_yield({"page": 2}, 10)


class Asynchronous(BatchableHandler):
    async def call(self, context: StepContext) -> StepHandlerResult:
        self.checkpoint_yield("k", 10)


def test_except_exception_does_not_swallow_a_yield() -> None:
    with pytest.raises(CheckpointYield) as caught:
        Careful().call(context())
    assert (caught.value.cursor, caught.value.items_processed) == (10, 10)
    assert caught.value.accumulated_results == {"sum": 1}


def test_a_yield_works_behind_return() -> None:
    with pytest.raises(CheckpointYield) as caught:
        Returning().call(context())
    assert caught.value.cursor == {"page": 2}


async def test_a_yield_works_in_an_async_handler() -> None:
    with pytest.raises(CheckpointYield) as caught:
        await Asynchronous().call(context())
    assert caught.value.cursor == "k"


def test_a_batch_context_yields_too() -> None:
    batch = BatchWorkerContext.from_step_context(context(inputs=worker_inputs()))
    assert batch is not None
    with pytest.raises(CheckpointYield):
        batch.checkpoint_yield(5, 5)


@pytest.mark.parametrize("count", [-1, 1.5, True, None])
def test_a_count_that_is_no_count_is_refused(count: Any) -> None:
    with pytest.raises(ValidationError, match="items_processed must be an integer of 0 or more"):
        checkpoint_yield(1, count)


def test_a_yield_travels_between_processes() -> None:
    again = pickle.loads(pickle.dumps(CheckpointYield(10, 3, {"a": 1})))
    assert (again.cursor, again.items_processed, again.accumulated_results) == (10, 3, {"a": 1})


@pytest.mark.parametrize(("delay", "seconds"), [(30, 30.0), ("1h", 3600.0), (timedelta(minutes=2), 120.0), (0, 0.0)])
def test_a_delay_until_the_next_call_is_a_duration(delay: Any, seconds: float) -> None:
    with pytest.raises(AgainIn) as caught:
        again_in(delay, reason="later")
    assert (caught.value.seconds, caught.value.reason, caught.value.limit) == (seconds, "later", 100)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"delay": "soon"}, "delay: expected a duration such as 90s"),
        ({"delay": -1}, "delay: expected a duration from 0s"),
        ({"delay": 1, "limit": 0}, "limit: expected a whole number from 1 to 10000, got 0"),
        ({"delay": 1, "limit": True}, "limit: expected a whole number"),
    ],
)
def test_a_delay_or_limit_out_of_range_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        again_in(**arguments)
