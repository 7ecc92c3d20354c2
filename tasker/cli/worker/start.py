"""`tasker worker`: processes that run steps."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from tasker.app.configured import UNCONFIGURED
from tasker.cli.options import Database, database_options
from tasker.cli.worker.children import (
    KILL_SECONDS,
    RESTART_SECONDS,
    TIED,
    code_of,
    end_with_parent,
    start_child,
    wait_for_end,
)
from tasker.cli.worker.options import LOG_FORMAT, configuration, log_as_configured, log_to_stderr, no_config_option
from tasker.errors import TaskerError
from tasker.process.stopping import stopping_signals

LOOK_SECONDS = 0.2
HANDLED_HERE = ("--processes", "--database-url")
"""Options that the children of `--processes` do not get as they are."""
MISTAKE = 2
"""Exit code of a worker that was given something it cannot work with."""


@click.command()
@click.argument("workflows", nargs=-1, type=click.Path(exists=True, path_type=Path), metavar="[WORKFLOW]...")
@click.option("--namespace", "namespaces", multiple=True, metavar="NAME", help="Serve this namespace; repeatable.")
@click.option("--handlers", multiple=True, metavar="MODULE_OR_FOLDER", help="Handlers to load; repeatable.")
@click.option("--concurrency", type=int, help="Steps that run at the same time, per process.")
@click.option("--threads", type=int, help="Threads for handlers that are not async, per process.")
@click.option("--processes", default=1, show_default=True, help="Worker processes; one that dies is started again.")
@click.option(
    "--result-path",
    type=click.Choice(["inline", "queued"]),
    help="inline: move tasks on here; queued: leave that to `tasker orchestrator`.",
)
@click.option("--lease", type=float, metavar="SECONDS", help="How long the worker is trusted when it is silent.")
@click.option(
    "--shutdown-timeout",
    type=float,
    metavar="SECONDS",
    help="Limit of an orderly stop (default: orchestration.shutdown_timeout_ms, 30 seconds).",
)
@click.option("--force", is_flag=True, help="Register templates even if their version exists with other content.")
@click.option(TIED, "tied", is_flag=True, hidden=True)
@LOG_FORMAT
@no_config_option
@database_options
def worker(processes: int, tied: bool, database: Database, **options: Any) -> None:
    """Run steps of the given workflows and namespaces until stopped. `tasker worker list` shows who is at work.

    Its settings come from the configuration file (TASKER_CONFIG_PATH or TASKER_CONFIG_ROOT, see `tasker config`);
    options given here count above it. SIGHUP makes it read the file again, and take over what can change while it runs.

    Without WORKFLOW it serves the templates that common.task_templates.search_paths finds.

    Stops gracefully on SIGTERM or Ctrl-C: claims nothing more, lets running steps end, gives the rest back without
    using an attempt. A second signal ends it at once, and so does the limit of --shutdown-timeout.

    \b
    Examples:
      tasker worker --no-config workflows/order_fulfillment
      tasker worker --namespace payments --handlers my_project.handlers --processes 4 --database-url URL
    """
    if tied and (url := end_with_parent()):
        database = replace(database, url=url, url_given=True)
    if processes > 1:
        url = database.url if database.url_given else None
        raise SystemExit(_supervise(processes, url, _stop_limit(database, options)))
    _serve(database, options)


def _stop_limit(database: Database, options: dict[str, Any]) -> float:
    """Seconds that the workers have for an orderly stop. What is wrong with their configuration they say themselves."""
    if options["shutdown_timeout"] is not None:
        return float(options["shutdown_timeout"])
    try:
        return configuration("worker", database, options["no_config"]).shutdown_seconds
    except TaskerError:
        return UNCONFIGURED.shutdown_seconds


def _serve(database: Database, options: dict[str, Any]) -> None:
    from tasker.app.serving import Service, run, serve_worker

    log_to_stderr()
    read = partial(
        configuration,
        "worker",
        database,
        options["no_config"],
        concurrency=options["concurrency"],
        threads=options["threads"],
        result_path=options["result_path"],
        lease_ms=None if options["lease"] is None else round(options["lease"] * 1000),
    )
    log_as_configured(chosen := read())
    service = Service(
        configuration=chosen,
        reread=read,
        data_dir=database.data_dir,
        workflows=options["workflows"],
        handlers=options["handlers"],
        namespaces=options["namespaces"],
        shutdown_seconds=options["shutdown_timeout"],
        force=options["force"],
    )
    run(serve_worker, service, lambda line: click.echo(line, err=True))


def _supervise(processes: int, database_url: str | None, stop_limit: float) -> int:
    """Run the same command that often with one process each; pass signals on; start again what dies.

    `stop_limit` is how many seconds they have for an orderly stop before they are killed.
    """
    start = partial(start_child, [sys.executable, "-m", "tasker", *_single(sys.argv[1:])], database_url)
    os.environ["TASKER_PROCESSES"] = str(processes)  # each of them says what they need together
    children = [start() for _ in range(processes)]
    arrived: list[int] = []
    for each in {*stopping_signals(), signal.SIGHUP}:
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
            _replace_the_ended(children, start, arrived)
        if stopping:
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
    children: list[subprocess.Popen[bytes]], start: Callable[[], subprocess.Popen[bytes]], arrived: Sequence[int]
) -> None:
    """Start each of them again after a pause, unless a signal arrives."""
    for place, child in enumerate(children):
        if child.poll() is not None:
            click.echo(f"a worker ended with {child.returncode}; starting another", err=True)
            time.sleep(RESTART_SECONDS)
            if arrived:
                return
            children[place] = start()


def _single(arguments: list[str]) -> list[str]:
    """The arguments with one process in place of many, and without the database's URL."""
    kept: list[str] = []
    skip = False
    for argument in arguments:
        if skip:
            skip = False
        elif argument in HANDLED_HERE:
            skip = True
        elif argument.partition("=")[0] not in HANDLED_HERE:
            kept.append(argument)
    return [*kept, "--processes", "1"]
