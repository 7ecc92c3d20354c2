"""Handlers in child processes: they may crash, hang, or ignore signals without harm to the worker."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tasker.engine.exchange import Result
from tasker.execution.attempt.attempt import Attempt, AttemptCancelled, ClaimReleased, ClaimSnoozed
from tasker.json_values import as_stored
from tasker.step_handler import StepHandler
from tasker.template.step_types import StepType
from tasker.types import StepContext, StepHandlerResult
from tests.unit.execution.bench import PATIENCE, Bench, Saver, failure_of, make_bench
from tests.unit.execution.modes import child_handlers

linux = pytest.mark.skipif(sys.platform != "linux", reason="real-time signals are not everywhere")


def attempt(bench: Bench, handler: Any, **options: Any) -> Attempt:
    """An attempt in a child process."""
    return bench.attempt(handler, execution="process", **options)


async def result(bench: Bench, handler: Any, **options: Any) -> Any:
    end = await bench.end(attempt(bench, handler, **options))
    assert isinstance(end, Result)
    assert end.success, end.failure
    return as_stored(end.success.encoded)


async def pid_in(folder: Path) -> int:
    """The process id that the handler writes once it runs."""
    async with asyncio.timeout(PATIENCE):
        while not (folder / "pid").exists():
            await asyncio.sleep(0.005)
    return int((folder / "pid").read_text())


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


async def test_a_handler_runs_in_a_child_with_its_whole_context(bench: Bench) -> None:
    end = await bench.end(attempt(bench, child_handlers.ShowsItself, inputs={"cursor": 9}))

    assert isinstance(end, Result)
    shown = as_stored(end.success.encoded)
    assert shown.pop("pid") != os.getpid()
    assert shown == {"amount": 5, "above": {"n": 1}}
    assert end.success.metadata == {"inputs": {"cursor": 9}}
    assert end.success is not None
    assert end.success.encoded.text.endswith('"amount":5,"above":{"n":1}}')


async def test_a_child_is_used_again(bench: Bench) -> None:
    pids = {(await result(bench, child_handlers.ShowsItself))["pid"] for _ in range(3)}
    pids.add((await result(bench, child_handlers.shows_itself_async))["pid"])

    assert len(pids) == 1
    assert pids != {os.getpid()}


async def test_closing_ends_the_children(bench: Bench) -> None:
    pid = (await result(bench, child_handlers.ShowsItself))["pid"]

    await bench.runner.close(0)

    assert gone(pid)


async def test_a_class_that_wants_a_fresh_instance_each_time_gets_it(bench: Bench) -> None:
    assert [await result(bench, child_handlers.CountsItsCalls) for _ in range(2)] == [{"calls": 1}, {"calls": 1}]


async def test_another_method_can_be_the_entry(bench: Bench) -> None:
    assert await result(bench, child_handlers.ShowsItself, method="session") == {"leads_its_session": True}


async def test_an_exception_crosses_the_border_with_all_it_says(bench: Bench) -> None:
    failure = failure_of(await bench.end(attempt(bench, child_handlers.RaisesPermanently)))

    assert (failure.message, failure.error_code, failure.retryable) == ("the card has expired", "EXPIRED", False)
    assert "child_handlers.py" in failure.metadata["traceback"]


async def test_a_result_that_is_not_json_says_so(bench: Bench) -> None:
    failure = failure_of(await bench.end(attempt(bench, child_handlers.ReturnsASet)))

    assert (failure.error_type, failure.retryable) == ("not_storable", False)
    assert "$.seen" in failure.message


async def test_a_result_against_result_schema_is_refused(bench: Bench) -> None:
    schema = {"required": ["total"]}

    failure = failure_of(await bench.end(attempt(bench, child_handlers.ShowsItself, result_schema=schema)))

    assert failure.error_type == "result_schema_violation"


async def test_a_yield_is_saved_by_the_parent_and_goes_on_in_the_child(bench: Bench) -> None:
    save = Saver()

    end = await bench.end(attempt(bench, child_handlers.Counts, save=save))

    assert isinstance(end, Result)
    assert as_stored(end.success.encoded)["done"] == 3
    assert as_stored(end.success.encoded)["accumulated"]["pid"] != os.getpid()
    assert [saved.cursor for saved in save.saved] == [1, 2, 3]


async def test_a_yield_may_hold_dictionaries_of_other_classes(bench: Bench) -> None:
    assert await result(bench, child_handlers.CountsByName) == {"letters": {"a": 2, "b": 1}}


async def test_sys_exit_in_a_child_is_a_failure_and_the_child_lives(bench: Bench) -> None:
    pid = (await result(bench, child_handlers.ShowsItself))["pid"]

    failure = failure_of(await bench.end(attempt(bench, child_handlers.Ends, inputs={"how": "sys.exit"})))

    assert (failure.error_type, failure.retryable) == ("handler_error", True)
    assert (await result(bench, child_handlers.ShowsItself))["pid"] == pid


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("os._exit", "exited with status 3"),
        ("SIGKILL", "was killed by SIGKILL"),
        ("SIGSEGV", "was killed by SIGSEGV"),
        pytest.param("signal 40", "was killed by signal 40", marks=linux),
    ],
)
async def test_a_child_that_dies_is_a_crash_that_may_be_tried_again(bench: Bench, how: str, said: str) -> None:
    failure = failure_of(await bench.end(attempt(bench, child_handlers.Ends, inputs={"how": how})))

    assert (failure.error_type, failure.retryable) == ("handler_crash", True)
    assert said in failure.message
    assert "amount" in await result(bench, child_handlers.ShowsItself, callable="next")


async def test_a_crash_is_permanent_for_a_step_that_may_run_once(bench: Bench) -> None:
    end = await bench.end(attempt(bench, child_handlers.Ends, inputs={"how": "os._exit"}, on_worker_lost="fail"))

    assert not failure_of(end).retryable


async def test_a_child_over_its_time_is_stopped(bench: Bench, tmp_path: Path) -> None:
    pid = (await result(bench, child_handlers.ShowsItself, callable="first"))["pid"]

    inputs = {"folder": str(tmp_path)}
    end = await bench.end(attempt(bench, child_handlers.Sleeps, inputs=inputs, timeout_seconds=0.01))

    failure = failure_of(end)
    assert (failure.error_type, failure.retryable) == ("handler_timeout", True)
    assert "its process was stopped" in failure.message
    assert gone(pid)


async def test_a_stopped_child_runs_its_finally_blocks(tmp_path: Path) -> None:
    bench = make_bench(stop_grace=PATIENCE)
    running, _ = await sleeping(bench, tmp_path, {})

    running.attempt.cancel.set()
    await running.end

    assert (tmp_path / "told").read_text() == "True"


@pytest.mark.parametrize("first", [child_handlers.IgnoresTheSignal, child_handlers.HearsTheSignal])
async def test_what_a_handler_does_with_the_signal_is_not_for_the_next_one(first: type, tmp_path: Path) -> None:
    bench = make_bench(stop_grace=PATIENCE / 3)
    before = (await result(bench, first, callable="first"))["pid"]
    running, pid = await sleeping(bench, tmp_path, {})

    running.attempt.cancel.set()
    await running.end

    assert pid == before
    assert (tmp_path / "told").read_text() == "True"


@pytest.mark.skipif(sys.platform != "linux", reason="signals to one thread of another process are Linux's")
async def test_a_child_whose_handler_the_signal_does_not_wake_is_stopped_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that comes just before the handler begins to wait is seen by nobody, as one that another thread gets."""
    bench = make_bench(stop_grace=PATIENCE)
    running, pid = await sleeping(bench, tmp_path, {})
    other = max(int(thread) for thread in os.listdir(f"/proc/{pid}/task"))
    assert other != pid
    monkeypatch.setattr(os, "killpg", lambda _, number: number == signal.SIGTERM and tgkill(pid, other, number))

    running.attempt.cancel.set()
    await running.end

    assert (tmp_path / "told").read_text() == "True"


def tgkill(pid: int, thread: int, number: int) -> None:
    assert ctypes.CDLL(None).tgkill(pid, thread, number) == 0


async def test_a_child_that_ignores_sigterm_is_killed(bench: Bench, tmp_path: Path) -> None:
    running, pid = await sleeping(bench, tmp_path, {"stubborn": True})

    running.attempt.cancel.set()

    assert isinstance(await running.end, AttemptCancelled)
    assert gone(pid)


@pytest.mark.parametrize("end", [AttemptCancelled, ClaimReleased])
async def test_the_flag_stops_the_child_and_nothing_is_reported(
    bench: Bench, tmp_path: Path, end: type[AttemptCancelled]
) -> None:
    running, pid = await sleeping(bench, tmp_path, {})

    running.attempt.cancel.set(end)

    assert type(await running.end) is end
    assert gone(pid)


async def test_an_attempt_that_is_stopped_while_its_child_starts_never_reaches_the_handler(
    bench: Bench, tmp_path: Path
) -> None:
    stopped = attempt(bench, child_handlers.Sleeps, inputs={"folder": str(tmp_path)})
    running = asyncio.ensure_future(bench.end(stopped))
    await asyncio.sleep(0)

    stopped.cancel.set()

    assert isinstance(await running, AttemptCancelled)
    assert "amount" in await result(bench, child_handlers.ShowsItself, callable="next")
    assert not (tmp_path / "pid").exists()


async def test_cancelling_the_task_of_an_attempt_kills_the_child(bench: Bench, tmp_path: Path) -> None:
    running, pid = await sleeping(bench, tmp_path, {})

    running.end.cancel()

    with pytest.raises(asyncio.CancelledError):
        await running.end
    async with asyncio.timeout(PATIENCE):
        while not gone(pid):
            await asyncio.sleep(0.005)


async def test_code_that_only_this_process_has_cannot_run_in_another(bench: Bench) -> None:
    class Local(StepHandler):
        def call(self, context: StepContext) -> StepHandlerResult:
            return self.success({})

    failure = failure_of(await bench.end(attempt(bench, Local)))

    assert (failure.error_type, failure.retryable) == ("handler_not_importable", False)
    assert "move it to a module that can be imported" in failure.message


async def test_an_object_with_something_in_it_cannot_run_in_another_process_where_that_would_be_missing(
    bench: Bench,
) -> None:
    failure = failure_of(await bench.end(attempt(bench, child_handlers.ShowsItsService("billing"))))

    assert (failure.error_type, failure.retryable) == ("handler_not_importable", False)
    assert "what is in the object that was registered or resolved exists in this process only" in failure.message
    assert "mode: thread" in failure.message


async def test_an_object_with_nothing_in_it_runs_in_another_process(bench: Bench) -> None:
    end = await result(bench, child_handlers.ShowsItself())

    assert end["pid"] != os.getpid()


async def test_an_attempt_waits_for_a_free_process(bench: Bench, tmp_path: Path) -> None:
    running, _ = await sleeping(bench, tmp_path, {})
    waiting = asyncio.ensure_future(result(bench, child_handlers.ShowsItself, callable="second"))

    running.attempt.cancel.set()
    await running.end

    assert (await waiting)["amount"] == 5


async def test_a_request_that_cannot_be_made_costs_no_child(bench: Bench) -> None:
    pid = (await result(bench, child_handlers.ShowsItself))["pid"]
    odd = replace(attempt(bench, child_handlers.ShowsItself), task_context={"amount": object()})

    with pytest.raises(TypeError):
        await bench.end(odd)

    await bench.runner.close(0)
    assert gone(pid)


async def test_what_is_no_text_in_sys_path_is_not_for_the_child(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, tmp_path])

    assert [(await result(bench, child_handlers.ShowsItself))["amount"] for _ in range(2)] == [5, 5]


async def test_a_handler_in_a_child_looks_again_later(bench: Bench) -> None:
    end = await bench.end(attempt(bench, child_handlers.LooksAgain))

    assert isinstance(end, ClaimSnoozed)
    assert (end.delay_ms, end.reason, end.limit) == (30_000, "not there", 100)


class Running:
    """An attempt on its way."""

    def __init__(self, bench: Bench, attempt: Attempt) -> None:
        self.attempt = attempt
        self.end = asyncio.ensure_future(bench.end(attempt))


async def sleeping(bench: Bench, folder: Path, inputs: dict[str, Any]) -> tuple[Running, int]:
    """A handler that sleeps in a child, and the child's process id."""
    running = Running(bench, attempt(bench, child_handlers.Sleeps, inputs={"folder": str(folder), **inputs}))
    return running, await pid_in(folder)


async def test_inputs_are_evaluated_before_the_child_which_knows_one_step_only(bench: Bench) -> None:
    attempt = bench.attempt(child_handlers.ShowsItself, execution="process")
    pattern = replace(attempt.step, name="work", type=StepType.BATCH_WORKER)
    step = replace(attempt.step, inputs={"amount": "${steps.work.map(result, result.n).sum()}"})
    plan = replace(attempt.plan, steps=(pattern, step))
    results = {"work_001": {"n": 1}, "work_002": {"n": 2}, "above": {"n": 1}}

    end = await bench.end(replace(attempt, plan=plan, step=step, task_context={}, dependency_results=results))

    assert isinstance(end, Result)
    assert end.success is not None
    assert '"amount":3' in end.success.encoded.text
