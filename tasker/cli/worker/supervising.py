"""Processes side by side that serve the same: signals are passed on to them, and one that dies is started again."""

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
"""Exit code of a process that was given something it cannot work with."""
Start = Callable[[], subprocess.Popen[bytes]]


def supervise(
    start: Start, processes: int, stop_limit: float, noun: str, on_stop: Callable[[], object] = lambda: None
) -> int:
    """Run so many; pass signals on; start again what dies. The exit code.

    `stop_limit` is how many seconds they have for an orderly stop before they are killed; `noun` is what one is called.
    `on_stop` is called when the stop begins.
    """
    os.environ["TASKER_PROCESSES"] = str(processes)  # each of them says what they need together
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
            _pass_on(signal.SIGTERM if ends else number, children)  # a closed terminal is this process's, not theirs
        elif not stopping and any(child.poll() == MISTAKE for child in children):
            stopping = mistaken = True
            _pass_on(signal.SIGTERM, children)  # started again, each of them would end with the same
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
        child.send_signal(number)  # nothing happens to one that has ended


def _replace_the_ended(
    children: list[subprocess.Popen[bytes]], start: Start, arrived: Sequence[int], noun: str
) -> None:
    """Start each of them again after a pause, unless a signal arrives."""
    for place, child in enumerate(children):
        if child.poll() is not None:
            click.echo(f"a {noun} ended with {child.returncode}; starting another", err=True)
            time.sleep(RESTART_SECONDS)
            if arrived:
                return
            children[place] = start()


def without(arguments: Sequence[str], options: Sequence[str]) -> list[str]:
    """The arguments of a command line without these options and their values."""
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
