"""What one attempt does to its thread, loop or process is not there in the next one, nor in what is shown of it."""

from __future__ import annotations

from typing import Any

import pytest

from tasker.engine.exchange import Result
from tasker.execution.attempt.call import context_of
from tasker.json_values import as_stored
from tests.unit.execution.bench import Bench
from tests.unit.execution.modes import child_handlers


@pytest.mark.parametrize("mode", [None, "process"])
@pytest.mark.parametrize("handler", [child_handlers.rounds, child_handlers.rounds_async])
async def test_the_decimal_context_is_each_attempts_own(bench: Bench, handler: Any, mode: str | None) -> None:
    async def precision() -> int:
        end = await bench.run(handler, execution=mode)
        assert isinstance(end, Result)
        assert end.success is not None, end.failure
        return int(as_stored(end.success.encoded)["precision"])

    assert [await precision() for _ in range(3)] == [28, 28, 28]


def test_what_is_shown_of_an_attempt_is_short_and_hides_its_input(bench: Bench) -> None:
    attempt = bench.attempt(child_handlers.rounds, inputs={"card": "4242424242424242"})
    context = context_of(attempt)
    for shown in (repr(attempt), repr(attempt.claim), repr(context), str(context)):
        assert "4242" not in shown
        assert "amount" not in shown
        assert len(shown) < 800
    assert repr(context).startswith("StepContext(handler='under_test', task='01900000-")
