"""Worker processes that a command starts, and that do not outlive it, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress

import click

TASKER = (sys.executable, "-m", "tasker")
TIED = "--end-with-parent"
"""Option of `tasker worker`: a line of standard input, whose other end only the parent holds, is the database's URL;
when the input ends, end gracefully."""

KILL_SECONDS = 2.0
"""After its own limit for an orderly stop, a worker is killed."""

RESTART_SECONDS = 1.0
"""Before another one takes the place of a worker that ended by itself: one that ends at once is no endless loop."""


def start_child(
    command: Sequence[str], database_url: str | None = None, sockets: Sequence[int] = ()
) -> subprocess.Popen[bytes]:
    """Start a command that stops by itself when this process is gone, even by `kill -9`. It inherits the `sockets`.

    It is told the URL through its standard input: `ps` shows arguments to everybody, and in its environment the URL
    would take the place of one that handlers read there.

    It has a session of its own: Ctrl-C reaches this process alone, which passes it on. Otherwise the child would get
    two signals, and the second one ends it at once.
    """
    child = subprocess.Popen(
        [*command, TIED],
        bufsize=0,
        stdin=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=_outlive_hangups,
        pass_fds=sockets,
    )
    assert child.stdin
    with suppress(BrokenPipeError):  # it has ended already
        child.stdin.write(f"{database_url or ''}\n".encode())
    return child


def wait_for_end(child: subprocess.Popen[bytes], until: float) -> None:
    """Wait until it has ended; kill it when it has not at the time `until` of the monotonic clock.

    It ends by itself before that unless nothing of Python's runs in it any more. What it held is taken over when its
    lease is over.
    """
    try:
        child.wait(max(0.0, until - time.monotonic()))
    except subprocess.TimeoutExpired:
        click.echo(f"the worker {child.pid} does not end; killing it", err=True)
        child.kill()
        child.wait()


def code_of(child: subprocess.Popen[bytes]) -> int:
    """The exit code of a child that has ended after it was told to; 0 also if it was still starting then, and could not
    listen: it had nothing to give back."""
    return 0 if child.returncode == -signal.SIGTERM else abs(int(child.returncode or 0))


def _outlive_hangups() -> None:
    """Until the command listens to SIGHUP and SIGUSR1, which are passed on to every child, they must not end it."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)


def end_with_parent() -> str | None:
    """Send SIGTERM to this process as soon as its parent is gone; returns the database's URL that it was told."""
    url = b""
    while (byte := os.read(0, 1)) not in (b"", b"\n"):
        url += byte
    threading.Thread(target=_wait_for_the_end, name="tasker parent", daemon=True).start()
    return url.decode() or None


def _wait_for_the_end() -> None:
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
