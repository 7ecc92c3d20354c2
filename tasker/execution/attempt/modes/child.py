"""The child process: takes one attempt after another from its parent, runs the handler, answers.

Started by `child_process`, in a session of its own. The main thread runs the handlers;
a second thread reads, and ends the process, with whatever the handler started, when the parent is gone.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from functools import cache
from queue import SimpleQueue
from types import FrameType
from typing import Any

from tasker.errors import HandlerLoadError
from tasker.execution.attempt.call import call_blocking
from tasker.execution.attempt.cancel import AttemptCancelFlag
from tasker.execution.attempt.modes.kept_values import SharedValueReceiver
from tasker.execution.attempt.modes.wire import HEADER, STOP, answer, attempt_from, frame, parse_output
from tasker.execution.attempt.outcome import not_in_process, settle_exception
from tasker.execution.attempt.values import Ending
from tasker.execution.reporting.from_child import ChildReporter
from tasker.log_format import log_as_parent
from tasker.registry.handler_object import to_handler
from tasker.registry.invocation import HandlerSource, ResolvedHandler
from tasker.registry.method_dispatch_wrapper import entry_point
from tasker.step_output import capture_logs
from tasker.types.context import StepContext

PR_SET_PDEATHSIG = 1
STOPPED = 128 + signal.SIGTERM
"""Exit status of a child that was told to stop."""

HEARD = 0.05
"""Seconds in which a thread that a signal has woken knows of it."""


class SubprocessMain:
    """Serves the parent at the other end of `connection` until that end is closed."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._requests: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self._flag = AttemptCancelFlag()
        self._received = SharedValueReceiver()
        self._sending = threading.RLock()  # a signal may come while it is held

    def serve(self) -> None:
        """Run handlers until SIGTERM comes or the parent goes away; never returns otherwise."""
        os.register_at_fork(after_in_child=self._hang_up)
        threading.Thread(target=self._read, daemon=True).start()
        while True:
            signal.signal(signal.SIGTERM, self._stop)  # the last handler may have put its own function in its place
            message = self._requests.get()
            ending = _run(message, self._flag, self._send, self._received)
            if self._flag.is_set():  # the handler swallowed the SystemExit
                sys.exit(STOPPED)
            self._send(answer(message["call"], ending))

    def _send(self, message: Mapping[str, Any]) -> None:
        """One frame at a time: threads of the handler may say something meanwhile. Raises `OSError`."""
        with self._sending:
            self._connection.sendall(frame(message))

    def _hang_up(self) -> None:
        """What the handler forks cannot answer, and does not keep the connection open."""
        self._sending = threading.RLock()  # the other may be held by a thread that the copy does not have
        if (descriptor := self._connection.detach()) >= 0:  # -1 in a copy of a copy
            os.close(descriptor)

    def _stop(self, _signal: int, _frame: FrameType | None) -> None:
        if not self._flag.is_set():  # a second signal does not disturb the `finally` blocks
            self._flag.set()
            sys.exit(STOPPED)  # raised inside the handler: its `finally` blocks run

    def _read(self) -> None:
        stream = self._connection.makefile("rb")
        try:
            while header := stream.read(HEADER.size):
                _, length = HEADER.unpack(header)
                message = json.loads(stream.read(length))
                if message == STOP:
                    threading.Thread(target=self._insist, daemon=True).start()
                else:
                    self._requests.put(message)
        finally:  # a parent that is killed before it has read an answer resets the connection
            os.killpg(os.getpgrp(), signal.SIGKILL)

    def _insist(self) -> None:
        """A signal that comes just before the main thread begins to wait does not wake it: send it until it is heard.

        A handler that has put its own function in the signal's place gets it once.
        """
        time.sleep(HEARD)
        while not self._flag.is_set() and signal.getsignal(signal.SIGTERM) == self._stop:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
            time.sleep(HEARD)


def _run(
    message: Mapping[str, Any],
    flag: AttemptCancelFlag,
    send: Callable[[Mapping[str, Any]], None],
    received: SharedValueReceiver,
) -> Ending:
    sys.path[:] = message["sys_path"]
    level = message["kept_log_level"]
    reporter = ChildReporter(level, lambda report: _tell(send, parse_output(message["call"], report)))
    attempt = attempt_from(message, flag, reporter, received)  # first: what was sent is not sent again
    source = HandlerSource(**message["source"])
    try:
        call = _entry(source)
    except HandlerLoadError as error:
        return not_in_process(message["name"], str(error))
    except Exception as error:  # the code has changed since the worker read it
        return settle_exception(error, message["name"])
    capture_logs(level)
    return call_blocking(attempt, ResolvedHandler(message["kind"], call, message["name"], source))


def _tell(send: Callable[[Mapping[str, Any]], None], message: Mapping[str, Any]) -> None:
    """What a handler says must not fail it: a copy that it has forked has no connection, and a parent may be gone."""
    with contextlib.suppress(OSError):
        send(message)


_load = cache(HandlerSource.load)
"""The handler's code is run once, and one instance serves all attempts in this process, until its file has changed."""


def _entry(source: HandlerSource) -> Callable[[StepContext], Any]:
    call = _load(source)
    owner: Any = getattr(call, "__self__", None)
    if getattr(owner, "reuse_instance", True):
        return call
    return lambda context: entry_point(to_handler(type(owner), source.qualname), source.method)(context)


def _end_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent ends: no handler that keeps the interpreter's lock delays it.

    Where the kernel cannot (it is Linux's), `SubprocessMain` notices by itself, as soon as it gets the lock.
    """
    with contextlib.suppress(ImportError, OSError, AttributeError):
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before
        os._exit(STOPPED)


def main() -> None:
    """Serve the parent behind the file descriptor that is the first argument; the third is its process id."""
    _end_with_parent(int(sys.argv[3]))
    connection = socket.socket(fileno=int(sys.argv[1]))
    connection.set_inheritable(False)
    connection.settimeout(None)  # whatever the default is here
    log_as_parent()
    SubprocessMain(connection).serve()
