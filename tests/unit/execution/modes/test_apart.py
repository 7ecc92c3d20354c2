"""A step that has lost its worker twice runs in a child process: one that ends its process harms no other then."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tasker.engine.exchange import Result
from tasker.json_values import as_stored
from tasker.step_handler import StepHandler
from tasker.types import StepContext, StepHandlerResult
from tests.unit.execution.bench import Bench, failure_of, make_bench
from tests.unit.execution.modes import child_handlers


async def process_of(bench: Bench, handler: Any, **options: Any) -> int:
    """The process in which the handler of a step ran that has lost two workers."""
    end = await bench.run(handler, apart=True, **options)
    assert isinstance(end, Result)
    assert end.success, end.failure
    pid: int = as_stored(end.success.encoded)["pid"]
    return pid


@pytest.mark.parametrize("handler", [child_handlers.ShowsItself, child_handlers.shows_itself_async])
async def test_it_runs_in_a_child_process(bench: Bench, handler: Any) -> None:
    assert await process_of(bench, handler) != os.getpid()


@pytest.mark.parametrize("mode", ["thread", "async"])
async def test_it_runs_where_its_template_says(bench: Bench, mode: str) -> None:
    assert await process_of(bench, child_handlers.shows_itself_async, execution=mode) == os.getpid()


async def test_code_that_only_this_process_has_runs_here_as_before(bench: Bench) -> None:
    class Local(StepHandler):
        def call(self, context: StepContext) -> StepHandlerResult:
            return self.success({"pid": os.getpid()})

    assert await process_of(bench, Local) == os.getpid()


async def test_an_object_that_was_registered_runs_here_since_a_child_cannot_know_what_is_in_it(bench: Bench) -> None:
    assert await process_of(bench, child_handlers.ShowsItsService("billing")) == os.getpid()


async def test_code_that_a_child_cannot_load_runs_here_in_the_same_attempt(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / "gone_meanwhile.py"
    module.write_text("import os\n\ndef shows(context):\n    return {'pid': os.getpid()}\n")
    monkeypatch.syspath_prepend(tmp_path)
    import gone_meanwhile  # type: ignore[import-not-found]  # made a line above

    module.unlink()

    assert await process_of(bench, gone_meanwhile.shows) == os.getpid()


@pytest.mark.parametrize("how", ["os._exit", "SIGKILL", "SIGSEGV"])
async def test_one_that_ends_this_process_too_is_put_aside_for_a_person(bench: Bench, how: str) -> None:
    failure = failure_of(await bench.run(child_handlers.Ends, apart=True, inputs={"how": how}))

    assert (failure.error_type, failure.retryable) == ("killed_its_workers", False)
    assert "Two workers were lost while they ran this step" in failure.message
    assert "tasker task step reset" in failure.message
    assert "execution: {mode: process}" in failure.message


async def test_its_own_failures_and_time_outs_are_tried_again_as_ever(tmp_path: Path) -> None:
    bench = make_bench()
    inputs = {"folder": str(tmp_path)}
    failure = failure_of(await bench.run(child_handlers.Sleeps, apart=True, inputs=inputs, timeout_seconds=0.01))
    await bench.runner.close(0)

    assert (failure.error_type, failure.retryable) == ("handler_timeout", True)


async def test_one_whose_process_was_told_to_stop_has_killed_nobody(bench: Bench) -> None:
    """A supervisor that stops a service may tell all its processes, and the worker lives to hear of it."""
    failure = failure_of(await bench.run(child_handlers.Ends, apart=True, inputs={"how": "SIGTERM"}))

    assert (failure.error_type, failure.retryable) == ("handler_crash", True)
