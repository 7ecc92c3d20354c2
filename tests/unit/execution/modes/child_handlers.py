"""Handlers that run in child processes."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import decimal
import logging
import os
import signal
import stat
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

from tasker.domain_events import publish_domain_event
from tasker.errors import PermanentError
from tasker.execution.modes.wire import answer, frame
from tasker.handlers.claims import Success
from tasker.json_values import encode
from tasker.step_handler import StepHandler, again_in, checkpoint_yield, step_handler
from tasker.types import StepContext, StepHandlerResult


class ShowsItself(StepHandler):
    def call(self, context: StepContext) -> StepHandlerResult:
        amount, above = context.input_data["amount"], context.get_dependency_result("above")
        return self.success({"pid": os.getpid(), "amount": amount, "above": above}, {"inputs": context.step_inputs})

    def session(self, context: StepContext) -> StepHandlerResult:
        return self.success({"leads_its_session": os.getsid(0) == os.getpid()})


class ShowsItsService(StepHandler):
    def __init__(self, service: str = "none") -> None:
        self.service = service

    def call(self, context: StepContext) -> StepHandlerResult:
        return self.success({"pid": os.getpid(), "service": self.service})


class CountsItsCalls(StepHandler):
    reuse_instance = False

    def __init__(self) -> None:
        self.calls = 0

    def call(self, context: StepContext) -> StepHandlerResult:
        self.calls += 1
        return self.success({"calls": self.calls})


class ConnectsOnce(StepHandler):
    """A process can make two of it: that with which it is resolved, and that of the first call."""

    reuse_instance = False
    made = 0

    def __init__(self) -> None:
        type(self).made += 1
        if self.made > 2:
            raise ConnectionError("the service is away")

    def call(self, context: StepContext) -> StepHandlerResult:
        return self.success({"pid": os.getpid()})


@step_handler("shows_itself_async")
async def shows_itself_async(context: StepContext) -> dict[str, int]:
    return {"pid": os.getpid()}


class RaisesPermanently(StepHandler):
    def call(self, context: StepContext) -> StepHandlerResult:
        raise PermanentError("the card has expired", error_code="EXPIRED")


class ReturnsASet(StepHandler):
    def call(self, context: StepContext) -> StepHandlerResult:
        return self.success({"seen": {1, 2}})


class Counts(StepHandler):
    def call(self, context: StepContext) -> StepHandlerResult:
        done = context.checkpoint_cursor or 0
        if done < 3:
            checkpoint_yield(done + 1, done + 1, {"pid": os.getpid()})
        return self.success({"done": done, "accumulated": context.accumulated_results})


class CountsByName(StepHandler):
    def call(self, context: StepContext) -> StepHandlerResult:
        if context.has_checkpoint():
            return self.success(context.accumulated_results)
        seen: defaultdict[str, Counter[str]] = defaultdict(Counter)
        seen["letters"].update("aab")
        checkpoint_yield(1, 3, seen)
        return self.success({})


class Ends(StepHandler):
    """Ends its process in the way that `inputs["how"]` names."""

    def call(self, context: StepContext) -> StepHandlerResult:
        ways: dict[str, Callable[[], object]] = {
            "sys.exit": lambda: sys.exit(3),
            "os._exit": lambda: os._exit(3),
            "SIGKILL": lambda: os.kill(os.getpid(), signal.SIGKILL),
            "SIGSEGV": lambda: os.kill(os.getpid(), signal.SIGSEGV),
            "SIGTERM": lambda: os.kill(os.getpid(), signal.SIGTERM),
            "signal 40": lambda: os.kill(os.getpid(), 40),
        }
        ways[context.step_inputs["how"]]()
        return self.success({})


class Sleeps(StepHandler):
    """Writes its process id, sleeps, and writes what it noticed of the end; `stubborn` lets it go on all the same."""

    def call(self, context: StepContext) -> StepHandlerResult:
        folder = Path(context.step_inputs["folder"])
        try:
            (folder / "pid.part").write_text(str(os.getpid()))
            (folder / "pid.part").rename(folder / "pid")
            time.sleep(60)
        except BaseException:
            (folder / "told").write_text(str(context.cancelled))
            while context.step_inputs.get("stubborn"):
                time.sleep(1)
            raise
        return self.success({})


class IgnoresTheSignal(StepHandler):
    def call(self, context: StepContext) -> StepHandlerResult:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        return self.success({"pid": os.getpid()})


class HearsTheSignal(StepHandler):
    """The end of its event loop puts the system's own in the place of what was there before."""

    async def call(self, context: StepContext) -> StepHandlerResult:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, lambda: None)
        return self.success({"pid": os.getpid()})


class Announces(StepHandler):
    def call(self, context: StepContext) -> StepHandlerResult:
        print("running", flush=True)
        time.sleep(60)
        return self.success({})


class Forks(StepHandler):
    """Forks, and the copy does not end as it should: it `returns`, `raises` or `yields`, `first` or last."""

    def call(self, context: StepContext) -> StepHandlerResult:
        inputs = context.step_inputs
        fork = ctypes.PyDLL(None).fork if inputs.get("raw") else os.fork
        waits, lets_go = os.pipe()
        copy = fork()
        if copy == 0:
            os.close(lets_go)
            if not inputs["first"]:
                os.read(waits, 1)
            return self.copy(inputs["copy"])
        if inputs["first"]:
            os.waitpid(copy, 0)
        else:
            LETS_GO[copy] = lets_go
        return self.success({"by": "the original"})

    def copy(self, end: str) -> StepHandlerResult:
        if end == "raises":
            raise RuntimeError("in the copy")
        if end == "yields":
            checkpoint_yield(1, 1, {})
        return self.success({"by": "the copy"})


class ForksTwice(StepHandler):
    """Its copy forks as well; answers what went wrong in the copies without being raised."""

    def call(self, context: StepContext) -> StepHandlerResult:
        hears, says = os.pipe()
        sys.unraisablehook = lambda unraisable: os.write(says, repr(unraisable.exc_value).encode())
        if (copy := os.fork()) == 0:
            if (inner := os.fork()) != 0:
                os.waitpid(inner, 0)
            os._exit(0)
        os.waitpid(copy, 0)
        sys.unraisablehook = sys.__unraisablehook__
        os.close(says)
        with os.fdopen(hears) as told:
            return self.success({"wrong": told.read()})


LETS_GO: dict[int, int] = {}
"""The copies that wait, and what to close so that they go on."""


class LetsGo(StepHandler):
    """Lets the copies of this process go on, and sees them end, before it comes to its own result."""

    def call(self, context: StepContext) -> StepHandlerResult:
        while LETS_GO:
            copy, lets_go = LETS_GO.popitem()
            os.close(lets_go)
            os.waitpid(copy, 0)
        return self.success({"nonce": context.step_inputs["nonce"]})


class Writes(StepHandler):
    """Writes `inputs["text"]`, or the answer to another call, to every socket that this process has."""

    def call(self, context: StepContext) -> StepHandlerResult:
        text = context.step_inputs.get("text")
        ending = Success(encode({"by": "a stranger"}))
        written = text.encode() if text else frame(answer(["another step", 1, 1], ending))
        for descriptor in range(3, 64):
            with contextlib.suppress(OSError):
                if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                    os.write(descriptor, written)
        return self.success({"pid": os.getpid()})


class LeavesAProcess(StepHandler):
    """Starts a process, and dies."""

    def call(self, context: StepContext) -> StepHandlerResult:
        left = subprocess.Popen(["sleep", "60"])
        Path(context.step_inputs["file"]).write_text(str(left.pid))
        os.kill(os.getpid(), signal.SIGKILL)
        return self.success({})


class HoldsTheInterpreter(StepHandler):
    """Never lets another thread run, nor a signal handler."""

    def call(self, context: StepContext) -> StepHandlerResult:
        print("running", flush=True)
        ctypes.PyDLL(None).sleep(60)
        return self.success({})


class Holds(StepHandler):
    """Holds `inputs["mb"]` of memory until it is ended, or gives it back."""

    def call(self, context: StepContext) -> StepHandlerResult:
        held = b"x" * (context.step_inputs["mb"] * 1024 * 1024)
        if context.step_inputs.get("sleeps"):
            time.sleep(60)
        return self.success({"held": len(held), "pid": os.getpid()})


class TellsItsCard(StepHandler):
    """Raises what it was given."""

    def call(self, context: StepContext) -> StepHandlerResult:
        pin = context.get_dependency_result("above")["pin"]
        raise ValueError(f"{context.get_input('card')} was refused, its pin is {pin}")


class ChangesWhatItReads(StepHandler):
    """Answers what it has read, and what it made of it."""

    def call(self, context: StepContext) -> StepHandlerResult:
        above, given = context.dependency_results["above"], context.input_data["n"]
        for value in (above, given):
            value["changed"].append("mine")
        return self.success(
            {"above": above["changed"], "input": given["changed"], "size": len(above["text"]), "pid": os.getpid()}
        )


class Speaks(StepHandler):
    def call(self, context: StepContext) -> StepHandlerResult:
        speak(context)
        return self.success({})


@step_handler("speaks_on_the_loop")
async def SpeaksOnTheLoop(context: StepContext) -> dict[str, int]:  # it stands for Speaks
    speak(context)
    return {}


def speak(context: StepContext) -> None:
    """Everything that a handler can say."""
    print("printed")
    logging.getLogger("my_project").info("logged")
    logging.getLogger("my_project").debug("not kept")
    context.log.info("told", n=1)
    context.report_progress(25, message="a quarter")
    print("begun", end="")


class PublishesAndYields(StepHandler):
    """Publishes an event on each side of a checkpoint, and one that belongs to a failure."""

    def call(self, context: StepContext) -> StepHandlerResult:
        if not context.has_checkpoint():
            context.publish_domain_event("item.began", {"number": 1})
            checkpoint_yield(1, 1)
        context.publish_domain_event("item.failed", {}, condition="failure", delivery_mode="fast")
        publish_domain_event("item.ended", {"number": 2}, delivery_mode="broadcast")
        return self.success({"shown": sorted(context.checkpoint or {})})


class PublishesAndFails(StepHandler):
    def call(self, context: StepContext) -> StepHandlerResult:
        context.publish_domain_event("item.failed", {}, condition="failure")
        raise PermanentError("no")


@step_handler("rounds")
def rounds() -> dict[str, int]:
    before = decimal.getcontext().prec
    decimal.getcontext().prec = 2
    return {"precision": before}


@step_handler("rounds_async")
async def rounds_async() -> dict[str, int]:
    before = decimal.getcontext().prec
    decimal.getcontext().prec = 2
    return {"precision": before}


class LooksAgain(StepHandler):
    def call(self, context: StepContext) -> StepHandlerResult:
        again_in(30, reason="not there")
