"""Options of the commands that create a task: its input, priority and identity."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import click

from tasker.cli.options import PRIORITY, PRIORITY_HELP, duration, moment


def task_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--input` (`given`), `--set` (`settings`), `--priority`, `--at`, `--in`, `--expires-in` and
    `--idempotency-key`."""
    options = (
        click.option(
            "--input", "given", metavar="JSON|@FILE|-", help="Input of the task; - is standard input.  [default: {}]"
        ),
        click.option("--set", "settings", metavar="KEY=VALUE", multiple=True, help="Set one input value; repeatable."),
        click.option("--priority", type=PRIORITY, default=0, show_default=True, help=PRIORITY_HELP),
        click.option(
            "--at", "run_at", type=moment, metavar="TIME", help="Begin at this time; without a zone, in the local one."
        ),
        click.option("--in", "delay", type=duration, metavar="TIME", help="Begin after this time: 90s, 5m, 36h, 3d."),
        click.option(
            "--expires-in",
            type=duration,
            metavar="TIME",
            help="Cancel the task if no worker has begun it so long after its start.",
        ),
        click.option(
            "--idempotency-key", metavar="K", help="Idempotency key; a second task with the same key is not created."
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def task_input(given: str | None, settings: tuple[str, ...]) -> dict[str, Any]:
    """Return the input that these options give. Raises `UsageError`."""
    from tasker.cli.run.input import read_input

    return read_input(given, settings, folder=None, read_stdin=sys.stdin.read).values
