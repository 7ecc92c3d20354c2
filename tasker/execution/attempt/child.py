"""The child process: takes one attempt after another from its parent, runs the handler, answers.

Started by `child_process`, in a session of its own. The main thread runs the handlers;
a second thread reads, and ends the process, with whatever the handler started, when the parent is gone.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from functools import cache
from queue import SimpleQueue
from types import FrameType
from typing import Any

from tasker.errors import HandlerLoadError
from tasker.execution.attempt.call import call_blocking
from tasker.execution.attempt.cancel import CancelFlag
from tasker.execution.attempt.outcome import not_in_process
from tasker.execution.attempt.values import Ending
from tasker.execution.attempt.wire import HEADER, answer, attempt_from, frame
from tasker.registry.invocation import HandlerSource, ResolvedHandler
from tasker.types.context import StepContext

STOPPED = 128 + signal.SIGTERM
"""Exit status of a child that was told to stop."""


class Child:
    """Serves the parent at the other end of `connection` until that end is closed."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._requests: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self._flag = CancelFlag()

    def serve(self) -> None:
        """Run handlers until SIGTERM comes or the parent goes away; never returns otherwise."""
        signal.signal(signal.SIGTERM, self._stop)
        threading.Thread(target=self._read, daemon=True).start()
        while True:
            ending = _run(self._requests.get(), self._flag)
            if self._flag.is_set():  # the handler swallowed the SystemExit
                sys.exit(STOPPED)
            self._connection.sendall(frame(answer(ending)))

    def _stop(self, _signal: int, _frame: FrameType | None) -> None:
        self._flag.set()
        sys.exit(STOPPED)  # raised inside the handler: its `finally` blocks run

    def _read(self) -> None:
        stream = self._connection.makefile("rb")
        while header := stream.read(HEADER.size):
            self._requests.put(json.loads(stream.read(*HEADER.unpack(header))))
        os.killpg(os.getpgrp(), signal.SIGKILL)


def _run(message: Mapping[str, Any], flag: CancelFlag) -> Ending:
    sys.path[:] = message["sys_path"]
    source = HandlerSource(**message["source"])
    try:
        call = _entry(source)
    except HandlerLoadError as error:
        return not_in_process(message["name"], str(error))
    handler = ResolvedHandler(message["kind"], call, message["name"], source)
    return call_blocking(attempt_from(message, flag), handler)


_load = cache(HandlerSource.load)
"""The handler's code is run once, and one instance serves all attempts in this process."""


def _entry(source: HandlerSource) -> Callable[[StepContext], Any]:
    call = _load(source)
    owner: Any = getattr(call, "__self__", None)
    if getattr(owner, "reuse_instance", True):
        return call
    fresh: Callable[[StepContext], Any] = getattr(type(owner)(), source.method)
    return fresh


def main() -> None:
    """Serve the parent behind the file descriptor that is the first argument."""
    connection = socket.socket(fileno=int(sys.argv[1]))
    connection.set_inheritable(False)
    Child(connection).serve()
