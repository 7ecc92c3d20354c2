"""Handlers that run in child processes."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tasker.errors import PermanentError
from tasker.step_handler import StepHandler, checkpoint_yield, step_handler
from tasker.types import StepContext, StepHandlerResult


class ShowsItself(StepHandler):
    def call(self, context: StepContext) -> StepHandlerResult:
        amount, above = context.input_data["amount"], context.get_dependency_result("above")
        return self.success({"pid": os.getpid(), "amount": amount, "above": above}, {"inputs": context.step_inputs})

    def session(self, context: StepContext) -> StepHandlerResult:
        return self.success({"leads_its_session": os.getsid(0) == os.getpid()})


class CountsItsCalls(StepHandler):
    reuse_instance = False

    def __init__(self) -> None:
        self.calls = 0

    def call(self, context: StepContext) -> StepHandlerResult:
        self.calls += 1
        return self.success({"calls": self.calls})


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


class Ends(StepHandler):
    """Ends its process in the way that `inputs["how"]` names."""

    def call(self, context: StepContext) -> StepHandlerResult:
        ways: dict[str, Callable[[], object]] = {
            "sys.exit": lambda: sys.exit(3),
            "os._exit": lambda: os._exit(3),
            "SIGKILL": lambda: os.kill(os.getpid(), signal.SIGKILL),
            "SIGSEGV": lambda: os.kill(os.getpid(), signal.SIGSEGV),
        }
        ways[context.step_inputs["how"]]()
        return self.success({})


class Sleeps(StepHandler):
    """Writes its process id, sleeps, and writes what it noticed of the end; `stubborn` lets it go on all the same."""

    def call(self, context: StepContext) -> StepHandlerResult:
        folder = Path(context.step_inputs["folder"])
        (folder / "pid.part").write_text(str(os.getpid()))
        (folder / "pid.part").rename(folder / "pid")
        try:
            time.sleep(60)
        except BaseException:
            (folder / "told").write_text(str(context.cancelled))
            while context.step_inputs.get("stubborn"):
                time.sleep(1)
            raise
        return self.success({})


class Announces(StepHandler):
    def call(self, context: StepContext) -> StepHandlerResult:
        print("running", flush=True)
        time.sleep(60)
        return self.success({})
