"""Supervision of equal child processes: signals are passed on to them, and one that dies is restarted."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence

import click

from tasker.cli.worker.children import KILL_SECONDS, RESTART_SECONDS, code_of, wait_for_end
from tasker.process.supervision.stopping import stopping_signals

LOOK_SECONDS = 0.2
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
    for each in {*stopping_signals(), signal.SIGHUP, signal.SIGUSR1}:
        signal.signal(each, lambda number, _: arrived.append(number))
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
        time.sleep(LOOK_SECONDS)
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
    kept: list[str] = []
    skip = False
    for argument in arguments:
        if skip:
            skip = False
        elif argument in options:
            skip = True
        elif argument.partition("=")[0] not in options:
            kept.append(argument)
    return kept
