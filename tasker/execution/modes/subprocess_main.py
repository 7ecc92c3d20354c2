"""Main program of a child process: receives one attempt after another from its parent, runs the handler, answers.

Started by `child_process`, in a session of its own. The main thread runs the handlers; a second thread reads, and kills
the process with everything that the handler started when the parent is gone.
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
from tasker.execution.attempt.attempt import AttemptCancelFlag, Ending
from tasker.execution.attempt.call import call_blocking
from tasker.execution.attempt.settle import not_in_process, settle_exception
from tasker.execution.fast.shared_values import SharedValueReceiver
from tasker.execution.modes.asking import ParentCalls, Questions
from tasker.execution.modes.wire import (
    ANSWER,
    HEADER,
    STOP,
    answer,
    attempt_from,
    close_resources,
    frame,
    parse_output,
)
from tasker.execution.report_buffer import ChildReporter
from tasker.handlers.context import StepContext
from tasker.handlers.registry.invocation import HandlerSource, ResolvedHandler, entry_point, to_handler
from tasker.logging.format import log_as_parent
from tasker.logging.step_log import capture_logs

PR_SET_PDEATHSIG = 1
STOPPED = 128 + signal.SIGTERM
"""Exit status of a child that was stopped by its parent."""

HEARD = 0.05
"""Seconds within which a thread notices a signal."""


class SubprocessMain:
    """Server of the requests that arrive on `connection`, until the parent closes it."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._requests: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self._flag = AttemptCancelFlag()
        self._received, self._questions = SharedValueReceiver(), Questions()
        self._sending = threading.RLock()  # reentrant: a signal handler may send while the lock is taken

    def serve(self) -> None:
        """Run handlers until SIGTERM arrives or the parent goes away; never returns otherwise."""
        os.register_at_fork(after_in_child=self._hang_up)
        threading.Thread(target=self._read, daemon=True).start()
        while True:
            signal.signal(signal.SIGTERM, self._stop)  # the last handler may have installed its own signal handler
            message = self._requests.get()
            calls = ParentCalls(message["call"], self._questions, self._send)
            ending = _run(message, self._flag, self._send, self._received, calls)
            if self._flag.is_set():  # the handler swallowed the SystemExit
                sys.exit(STOPPED)
            self._send(answer(message["call"], ending))

    def _send(self, message: Mapping[str, Any]) -> None:
        """Send one frame at a time, since threads of the handler may send output meanwhile. Raises `OSError`."""
        with self._sending:
            self._connection.sendall(frame(message))

    def _hang_up(self) -> None:
        """Close the connection in a process that the handler forks: it must not answer or keep the connection open."""
        self._sending = threading.RLock()  # a thread that the copy does not have may have locked the old one
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
                elif message.get("type") == ANSWER:
                    self._questions.answered(message)
                else:
                    self._requests.put(message)
        finally:  # a parent that is killed before it has read an answer resets the connection
            os.killpg(os.getpgrp(), signal.SIGKILL)

    def _insist(self) -> None:
        """Repeat SIGTERM until the main thread notices it: a signal just before it begins to wait does not wake it.

        A handler that has installed its own signal handler gets the signal once.
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
    calls: ParentCalls,
) -> Ending:
    sys.path[:] = message["sys_path"]
    level = message["kept_log_level"]
    reporter = ChildReporter(level, lambda report: _send_output(send, parse_output(message["call"], report)))
    # first: the parent does not send shared values again
    attempt = attempt_from(message, flag, reporter, received, calls)
    source = HandlerSource(**message["source"])
    try:
        call = _entry(source)
    except HandlerLoadError as error:
        return not_in_process(message["name"], str(error))
    except Exception as error:  # the code has changed since the worker read it
        return settle_exception(error, message["name"])
    capture_logs(level)
    try:
        return call_blocking(attempt, ResolvedHandler(message["kind"], call, message["name"], source))
    finally:
        if attempt.resources is not None:
            attempt.resources.release()


def _send_output(send: Callable[[Mapping[str, Any]], None], message: Mapping[str, Any]) -> None:
    """Send output of a handler, ignoring errors.

    A failed send must not fail the handler: a forked copy has no connection, and the parent may be gone.
    """
    with contextlib.suppress(OSError):
        send(message)


_load = cache(HandlerSource.load)
"""Loader of the handler's code, run once: one instance serves all attempts of this process until its file changes."""


def _entry(source: HandlerSource) -> Callable[[StepContext], Any]:
    call = _load(source)
    owner: Any = getattr(call, "__self__", None)
    if getattr(owner, "reuse_instance", True):
        return call
    return lambda context: entry_point(to_handler(type(owner), source.qualname), source.method)(context)


def _end_with_parent(parent: int) -> None:
    """Ask the kernel to kill this process when its parent ends, even while a handler holds the interpreter lock.

    Only Linux supports this. Elsewhere `SubprocessMain` notices that the parent is gone once it gets the lock.
    """
    with contextlib.suppress(ImportError, OSError, AttributeError):
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # the parent ended before the request to the kernel
        os._exit(STOPPED)


def main() -> None:
    """Serve the parent at the file descriptor in the first argument; the third argument is the parent's process id."""
    _end_with_parent(int(sys.argv[3]))
    connection = socket.socket(fileno=int(sys.argv[1]))
    connection.set_inheritable(False)
    connection.settimeout(None)  # `socket.setdefaulttimeout` may have set another default
    log_as_parent()
    try:
        SubprocessMain(connection).serve()
    finally:
        close_resources()
