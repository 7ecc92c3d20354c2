"""Child processes of one command, supervised and stopped together."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

import click

from tasker.process.stopping import stopping_signals

TASKER = (sys.executable, "-m", "tasker")
TIED = "--end-with-parent"
"""Option of a child process: it reads the database's URL as a line of standard input, and ends gracefully when that
input closes. Only the parent holds the other end.
"""

KILL_SECONDS = 2.0
"""Seconds after a worker's own limit for an orderly stop, after which it is killed."""

RESTART_SECONDS = 1.0
"""Pause before an exited worker is replaced, so that a worker that exits at once causes no busy loop."""


def start_child(
    command: Sequence[str], database_url: str | None = None, sockets: Sequence[int] = ()
) -> subprocess.Popen[bytes]:
    """Start a command that stops when this process is gone, even by `kill -9`. It inherits the `sockets`.

    The URL is passed through standard input: `ps` shows arguments to everybody, and an environment variable would
    replace one of the same name that handlers read.

    The child gets its own session, so that Ctrl-C reaches this process only, which passes it on. Otherwise the child
    would get two signals, and the second one ends it at once.
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
    """Wait until the child has ended; kill it at the time `until` of the monotonic clock.

    It is only killed if its Python code no longer runs. Its claims are taken over when its lease expires.
    """
    try:
        child.wait(max(0.0, until - time.monotonic()))
    except subprocess.TimeoutExpired:
        click.echo(f"the worker {child.pid} does not stop; killing it", err=True)
        child.kill()
        child.wait()


def code_of(child: subprocess.Popen[bytes]) -> int:
    """Return the exit code of a child that was asked to stop.

    It is 0 also for a child that was still starting and had no signal handler yet: it had no claims to release.
    """
    return 0 if child.returncode == -signal.SIGTERM else abs(int(child.returncode or 0))


def _outlive_hangups() -> None:
    """Ignore SIGHUP and SIGUSR1, which are passed on to every child, until the child has its own handlers for them."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)


def end_with_parent() -> str | None:
    """Send SIGTERM to this process as soon as its parent is gone; return the database's URL from the parent."""
    url = b""
    while (byte := os.read(0, 1)) not in (b"", b"\n"):
        url += byte
    threading.Thread(target=_wait_for_the_end, name="tasker parent", daemon=True).start()
    return url.decode() or None


def _wait_for_the_end() -> None:
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


CHECK_SECONDS = 0.2
MISTAKE = 2
"""Exit code of a process for a mistake in its input."""
Start = Callable[[], subprocess.Popen[bytes]]


def supervise(
    start: Start, processes: int, stop_limit: float, noun: str, on_stop: Callable[[], object] = lambda: None
) -> int:
    """Run `processes` children, pass signals on to them, restart those that die, and return the exit code.

    `stop_limit` is the number of seconds for an orderly stop, after which they are killed; `noun` names a child in
    messages. `on_stop` is called when the stop begins, and again at each check until it ends.
    """
    os.environ["TASKER_PROCESSES"] = str(processes)  # each process logs the connections that all of them need
    children = [start() for _ in range(processes)]
    arrived: list[int] = []
    for signum in {*stopping_signals(), signal.SIGHUP, signal.SIGUSR1}:
        signal.signal(signum, lambda number, _: arrived.append(number))
    stopping = mistaken = False
    until = math.inf
    while not stopping or any(child.poll() is None for child in children):
        if arrived:
            number = arrived.pop(0)
            ends = number in stopping_signals()
            stopping = stopping or ends
            # A closed terminal sends SIGHUP, which would only reload the settings of a child.
            _pass_on(signal.SIGTERM if ends else number, children)
        elif not stopping and any(child.poll() == MISTAKE for child in children):
            stopping = mistaken = True
            _pass_on(signal.SIGTERM, children)  # after a restart each of them would fail in the same way
        elif not stopping:
            _replace_the_ended(children, start, arrived, noun)
        if stopping:
            on_stop()
            until = min(until, time.monotonic() + stop_limit + KILL_SECONDS)
        if time.monotonic() > until:
            for child in children:
                wait_for_end(child, until)
        time.sleep(CHECK_SECONDS)
    return MISTAKE if mistaken else max(code_of(child) for child in children)


def _pass_on(number: int, children: Sequence[subprocess.Popen[bytes]]) -> None:
    for child in children:
        child.send_signal(number)  # has no effect on a child that has ended


def _replace_the_ended(
    children: list[subprocess.Popen[bytes]], start: Start, arrived: Sequence[int], noun: str
) -> None:
    """Replace each ended child after a pause, unless a signal arrives."""
    for place, child in enumerate(children):
        if child.poll() is not None:
            click.echo(f"a {noun} exited with {child.returncode}; starting another", err=True)
            time.sleep(RESTART_SECONDS)
            if arrived:
                return
            children[place] = start()


def without(arguments: Sequence[str], options: Sequence[str]) -> list[str]:
    """Return the arguments of a command line without these options and their values."""
    remaining: list[str] = []
    skip = False
    for argument in arguments:
        if skip:
            skip = False
        elif argument in options:
            skip = True
        elif argument.partition("=")[0] not in options:
            remaining.append(argument)
    return remaining
