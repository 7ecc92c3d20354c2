"""Handlers that fork: whatever the copy does, each step gets its own answer and the worker stays as it is."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tasker.engine.exchange import Result
from tasker.json_values import as_stored
from tasker.step_handler import StepHandler
from tasker.types import StepContext, StepHandlerResult
from tests.support.waiting import until
from tests.unit.execution.bench import PATIENCE, Bench, Saver, failure_of
from tests.unit.execution.modes import child_handlers


async def in_child(bench: Bench, handler: Any, save: Saver | None = None, **inputs: Any) -> Any:
    """The result of the handler in a child process."""
    attempt = bench.attempt(handler, callable=handler.__name__, execution="process", inputs=inputs, save=save)
    end = await bench.end(attempt)
    assert isinstance(end, Result)
    assert end.success, end.failure
    return as_stored(end.success.encoded)


@pytest.mark.parametrize(
    ("copy", "raw"),
    [("returns", False), ("raises", False), ("yields", False), ("returns", True)],
    ids=["returns", "raises", "yields", "forked by a library in C"],
)
async def test_a_copy_that_comes_back_before_the_original_answers_nothing(bench: Bench, copy: str, raw: bool) -> None:
    assert await in_child(bench, child_handlers.Forks, copy=copy, first=True, raw=raw) == {"by": "the original"}
    for nonce in range(3):
        assert await in_child(bench, child_handlers.LetsGo, nonce=nonce) == {"nonce": nonce}


@pytest.mark.parametrize("copy", ["returns", "raises"])
async def test_a_copy_that_comes_back_while_another_step_runs_answers_nothing(bench: Bench, copy: str) -> None:
    await in_child(bench, child_handlers.Forks, copy=copy, first=False)

    for nonce in range(3):
        assert await in_child(bench, child_handlers.LetsGo, nonce=nonce) == {"nonce": nonce}


async def test_a_copy_of_a_child_may_fork_again(bench: Bench) -> None:
    assert await in_child(bench, child_handlers.ForksTwice) == {"wrong": ""}


async def test_an_answer_to_another_call_is_dropped_and_its_child_not_used_again(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    pid = (await in_child(bench, child_handlers.Writes))["pid"]

    assert "subprocess_replaced" in caplog.text
    assert (await in_child(bench, child_handlers.ShowsItself))["pid"] != pid
    async with asyncio.timeout(PATIENCE):
        while not gone(pid):
            await asyncio.sleep(0.005)


async def test_a_child_that_writes_something_else_to_its_connection_is_ended_and_its_step_tried_again(
    bench: Bench,
) -> None:
    writes = bench.attempt(child_handlers.Writes, execution="process", inputs={"text": "progress: 10 %"})

    failure = failure_of(await bench.end(writes))

    assert (failure.error_type, failure.retryable) == ("handler_crash", True)
    assert "wrote something else than an answer" in failure.message
    assert "amount" in await in_child(bench, child_handlers.ShowsItself)


async def test_what_a_child_has_started_ends_with_it_when_it_dies(bench: Bench, tmp_path: Path) -> None:
    file = tmp_path / "pid"

    await bench.end(bench.attempt(child_handlers.LeavesAProcess, execution="process", inputs={"file": str(file)}))

    pid = int(file.read_text())
    until(lambda: gone(pid), "what it started has ended")


class ForksInThread(StepHandler):
    """The copy comes back while the original waits for its end, and for how it ended."""

    def call(self, context: StepContext) -> StepHandlerResult:
        if (copy := os.fork()) == 0:
            signal.alarm(30)
            return self.success({"by": "the copy"})
        return self.success({"by": "the original", "status": os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1])})


async def ticks(says: int) -> None:
    os.write(says, b"tick")


class ForksOnTheLoop(StepHandler):
    async def call(self, context: StepContext) -> StepHandlerResult:
        loop, says = asyncio.get_running_loop(), context.step_inputs["says"]
        loop.set_exception_handler(lambda loop, problem: os.write(says, problem["message"].encode()))
        task = asyncio.ensure_future(ticks(says))
        del task  # the loop alone holds it: who drops what is ready destroys it
        if (copy := os.fork()) == 0:
            signal.alarm(30)
            if context.step_inputs["awaits"]:
                await asyncio.sleep(0)
            return self.success({"by": "the copy"})
        status = os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1])
        return self.success({"by": "the original", "status": status})


async def test_a_copy_of_a_worker_made_in_a_thread_ends_when_its_handler_comes_back(bench: Bench) -> None:
    end = await bench.run(ForksInThread)

    assert isinstance(end, Result)
    assert as_stored(end.success.encoded) == {"by": "the original", "status": 1}


@pytest.mark.parametrize("awaits", [False, True])
async def test_a_copy_of_a_worker_made_on_the_loop_never_runs_the_loop(bench: Bench, awaits: bool) -> None:
    hears, says = os.pipe()

    end = await bench.run(ForksOnTheLoop, inputs={"awaits": awaits, "says": says})
    await asyncio.sleep(0)

    assert isinstance(end, Result)
    assert as_stored(end.success.encoded) == {"by": "the original", "status": 1}
    assert os.read(hears, 100) == b"tick", (
        "what waited on the loop ran once, in the original, and its copy was given up quietly"
    )
    os.close(hears)
    os.close(says)


STOPS = """
import asyncio, os, signal, time
from tasker.process.stopping import Stop

async def main():
    stop = Stop(60)
    hears, says = os.pipe()
    if (copy := os.fork()) == 0:
        os.write(says, b".")
        while True:
            time.sleep(0.01)
    os.read(hears, 1)
    os.kill(copy, signal.SIGTERM)
    assert os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1]) == -signal.SIGTERM
    assert not stop._requested.is_set()

asyncio.run(main())
"""


def test_a_copy_ends_at_sigterm_which_asks_its_original_to_stop() -> None:
    subprocess.run([sys.executable, "-c", STOPS], check=True, timeout=PATIENCE)


def gone(pid: int) -> bool:
    """True when there is no such process, or only what is left of it for its parent."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout.strip()
    return not state or state.startswith("Z")
