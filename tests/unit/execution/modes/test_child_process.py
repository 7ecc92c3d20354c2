"""A child does not outlive its parent, and is heard for as long as its handler runs."""

from __future__ import annotations

import asyncio
import logging
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tasker.execution.modes.subprocess import Subprocess
from tasker.execution.modes.wire import CallId, answer, frame, parse_output
from tasker.handlers.claims import Success
from tasker.json_values import encode
from tasker.logging.current_step import LogLine, ProgressReport
from tests.unit.execution.bench import PATIENCE

RUNNING = """
import asyncio
from tests.unit.execution.modes import child_handlers
from tests.unit.execution.bench import make_bench

async def main():
    bench = make_bench()
    await bench.end(bench.attempt(child_handlers.{handler}, execution="process"))

asyncio.run(main())
"""

UNREAD = """
import asyncio, select
from tasker.execution.modes.subprocess import Subprocess
from tasker.execution.modes.wire import call_id, frame, request
from tasker.handlers.registry.invocation import resolve_for
from tests.unit.execution.modes import child_handlers
from tests.unit.execution.bench import make_bench

async def main():
    bench = make_bench()
    attempt = bench.attempt(child_handlers.RaisesPermanently)
    child, call = await Subprocess.start(), call_id(attempt, 1)
    message = request(call, attempt, resolve_for(attempt.step, bench.registry), child.sent)
    asking = asyncio.ensure_future(child.ask(call, frame(message)))
    await asyncio.sleep(0)
    select.select([child._writer.get_extra_info("socket")], [], [])
    print("running", flush=True)
    select.select([], [], [])

asyncio.run(main())
"""


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(RUNNING.format(handler="Announces"), id="in the middle of a handler"),
        pytest.param(
            RUNNING.format(handler="HoldsTheInterpreter"),
            id="while its handler lets no other thread run",
            marks=pytest.mark.skipif(sys.platform != "linux", reason="needs PR_SET_PDEATHSIG"),
        ),
        pytest.param(UNREAD, id="before its answer was read"),
    ],
)
def test_a_child_ends_with_its_parent(program: str) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[4]
    )
    assert parent.stdout is not None
    assert parent.stdout.readline() == "running\n"

    parent.kill()

    said, _ = parent.communicate(timeout=PATIENCE)  # the child holds the pipe open for as long as it lives
    assert said == ""


CALL: CallId = ["step", 1, 1]


def line(message: str) -> bytes:
    return frame(parse_output(CALL, LogLine(1.0, logging.INFO, "shop", message)))


class Heard:
    """Keeps the lines of a call."""

    level = logging.DEBUG

    def __init__(self) -> None:
        self.lines: list[str] = []

    def log(self, line: LogLine) -> None:
        self.lines.append(line.message)

    def printed(self, text: str) -> None: ...

    def progress(self, report: ProgressReport) -> None: ...

    def flush(self) -> None: ...


async def test_what_is_said_after_the_answer_is_nobodys() -> None:
    """A thread that the handler has left behind may say it."""
    ours, theirs = socket.socketpair()
    process = subprocess.Popen(["sleep", "60"], start_new_session=True)
    child, heard = Subprocess(process, *await asyncio.open_connection(sock=ours)), Heard()
    asking = asyncio.ensure_future(child.ask(CALL, b"", heard))
    await asyncio.sleep(0)

    with theirs:
        theirs.sendall(line("before") + frame(answer(CALL, Success(encode({})))) + line("after"))
    await asking
    async with asyncio.timeout(PATIENCE):
        while child.sound:
            await asyncio.sleep(0)

    assert heard.lines == ["before"]
    await child.stop(0)
