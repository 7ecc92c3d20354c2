"""Worker processes that a command starts, and that do not outlive it, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Sequence

TIED = "--end-with-parent"
"""Option of `tasker worker`: end gracefully when standard input ends, whose other end only the parent holds."""

RESTART_SECONDS = 1.0
"""Before another one takes the place of a worker that ended by itself: one that ends at once is no endless loop."""


def start_child(command: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start a `tasker worker` command that stops by itself when this process is gone, even by `kill -9`.

    It has a session of its own: Ctrl-C reaches this process alone, which passes it on. Otherwise the child would get
    two signals, and the second one ends it at once.
    """
    return subprocess.Popen(
        [*command, TIED], stdin=subprocess.PIPE, start_new_session=True, preexec_fn=_outlive_hangups
    )


def _outlive_hangups() -> None:
    """Until the command listens to SIGHUP itself, which is passed on to every child, it must not end it."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def end_with_parent() -> None:
    """Send SIGTERM to this process as soon as its parent is gone."""
    threading.Thread(target=_wait_for_the_end, name="tasker parent", daemon=True).start()


def _wait_for_the_end() -> None:
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
