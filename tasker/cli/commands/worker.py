"""`tasker worker`: start a worker, or list the running processes."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tasker.app.configured import UNCONFIGURED
from tasker.cli.commands.process_options import (
    LOG_FORMAT,
    configuration,
    log_as_configured,
    log_to_stderr,
    no_config_option,
)
from tasker.cli.commands.server import require_libraries
from tasker.cli.commands.worker_children import TASKER, TIED, end_with_parent, start_child, supervise, without
from tasker.cli.loading import pause_gc
from tasker.cli.options import CONCURRENCY, STOP_SECONDS, DatabaseOption, NumberRange, database_options
from tasker.cli.suggestions import GuessingGroup, WorkflowPath, no_such_command
from tasker.errors import TaskerError
from tasker.template.names import NAME, NAME_RULE

if TYPE_CHECKING:
    from tasker.app.configured import Configured

PORT = "Address for health checks and metrics (default: worker.web.bind_address, else none)."
HANDLED_HERE = ("--processes", "--database-url")
"""Options that are not passed unchanged to the children of `--processes`."""


def _tags(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Return the tags; one option may name several of them with commas between."""
    tags = tuple(tag.strip() for value in values for tag in value.split(","))
    for tag in tags:
        if not re.fullmatch(NAME, tag):
            raise click.BadParameter(f"invalid tag {tag!r}: {NAME_RULE}")
    return tags


@click.command()
@click.argument("workflows", nargs=-1, type=WorkflowPath(), metavar="[WORKFLOW]...")
@click.option("--namespace", "namespaces", multiple=True, metavar="NAME", help="Namespace to serve; repeatable.")
@click.option("--handlers", multiple=True, metavar="MODULE_OR_FOLDER", help="Module or file with handlers; repeatable.")
@click.option("--concurrency", type=CONCURRENCY, help="Maximum number of concurrent steps per process.")
@click.option(
    "--tags",
    multiple=True,
    metavar="TAG",
    callback=_tags,
    help="Tag that steps may require, such as gpu; repeatable (worker.tags).",
)
@click.option("--threads", type=click.IntRange(1, 1000), help="Threads for handlers that are not async, per process.")
@click.option(
    "--processes",
    type=click.IntRange(1, 1000),
    default=1,
    show_default=True,
    help="Number of worker processes; one that dies is restarted.",
)
@click.option(
    "--result-path",
    type=click.Choice(["inline", "queued"]),
    help="inline: this process also orchestrates; queued: `tasker orchestrator` does.",
)
@click.option(
    "--lease",
    type=NumberRange(1, 600),
    metavar="SECONDS",
    help="Lease duration.",
)
@click.option(
    "--shutdown-timeout",
    type=STOP_SECONDS,
    metavar="SECONDS",
    help="Maximum time for a graceful shutdown (default: orchestration.shutdown_timeout_ms, 30 seconds).",
)
@click.option("--port", type=click.IntRange(0, 65535), help=PORT)
@click.option("--force", is_flag=True, help="Register templates even if their version exists with other content.")
@click.option(TIED, "tied", is_flag=True, hidden=True)
@LOG_FORMAT
@no_config_option
@database_options
def start_worker(processes: int, tied: bool, database: DatabaseOption, **options: Any) -> None:
    """Run steps of the given workflows and namespaces until stopped. `tasker worker list` shows the running processes.

    Its settings come from the configuration file (TASKER_CONFIG_PATH or TASKER_CONFIG_ROOT, see `tasker config`);
    options given here override it. SIGHUP reloads the file, and applies the settings that can change at run time.

    Without WORKFLOW it serves the templates found by common.task_templates.search_paths.

    Stops gracefully on SIGTERM or Ctrl-C: claims nothing more, lets running steps end, and releases the rest without
    using an attempt. A second signal, or the limit of --shutdown-timeout, ends it at once.

    \b
    Examples:
      tasker worker --no-config workflows/order_fulfillment
      tasker worker --namespace payments --handlers my_project.handlers --processes 4 --database-url URL
    """
    if tied and (url := end_with_parent()):
        database = replace(database, url=url, url_given=True)
    if processes > 1:
        url = database.url if database.url_given else None
        start = partial(start_child, [*TASKER, *without(sys.argv[1:], HANDLED_HERE), "--processes", "1"], url)
        raise SystemExit(supervise(start, processes, _stop_limit(database, options), "worker"))
    _serve(database, options)


def _stop_limit(database: DatabaseOption, options: dict[str, Any]) -> float:
    """Return the seconds that the workers have for an orderly stop; they report an invalid configuration themselves."""
    if options["shutdown_timeout"] is not None:
        return float(options["shutdown_timeout"])
    try:
        return configuration("worker", database, options["no_config"]).shutdown_seconds
    except TaskerError:
        return UNCONFIGURED.shutdown_seconds


def _configured(database: DatabaseOption, options: dict[str, Any], **given: dict[str, Any]) -> Configured:
    chosen = configuration("worker", database, options["no_config"], **given)
    if not options["tags"]:
        return chosen
    return replace(chosen, worker=replace(chosen.worker, tags=frozenset(options["tags"])))


def _serve(database: DatabaseOption, options: dict[str, Any]) -> None:
    with pause_gc():
        from tasker.app.serving import Service, run, serve_worker
        from tasker.logging.step_log import LEVELS, capture_logs

    log_to_stderr()
    read = partial(
        _configured,
        database,
        options,
        dispatch={"max_concurrent_handlers": options["concurrency"]},
        execution={"threads": options["threads"], "result_path": options["result_path"]},
        lease={"lease_ms": None if options["lease"] is None else round(options["lease"] * 1000)},
    )
    log_as_configured(chosen := read())
    capture_logs(LEVELS[chosen.worker.execution.keep_logs])
    if options["port"] is not None or (chosen.worker_port.enabled and chosen.worker_port.is_set("bind_address")):
        require_libraries("a port of its own")
    service = Service(
        configuration=chosen,
        reread=read,
        data_dir=database.data_dir,
        workflows=options["workflows"],
        handlers=options["handlers"],
        namespaces=options["namespaces"],
        shutdown_seconds=options["shutdown_timeout"],
        port=options["port"],
        force=options["force"],
    )
    run(serve_worker, service, lambda line: click.echo(line, err=True))


LIST = "list"


class WorkerGroup(GuessingGroup):
    """Group that starts a worker unless another command is named, and imports `list` only when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), LIST])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command, or None if there is none of that name."""
        if cmd_name != LIST:
            return super().get_command(ctx, cmd_name)
        from tasker.cli.commands.worker_list import list_

        return list_

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert `start` if the first argument is not a command; refuse a misspelt command that is not a path."""
        commands = self.list_commands(ctx)
        if args and args[0] in commands:
            return super().parse_args(ctx, args)
        if args and _is_nearly(args[0], [*commands, "help"]):
            ctx.fail(no_such_command(ctx, args))
        return super().parse_args(ctx, ["start", *args])


def _is_nearly(word: str, commands: Sequence[str]) -> bool:
    if word.startswith("-") or Path(word).exists():
        return False
    from difflib import get_close_matches  # imported only after a mistake

    return bool(get_close_matches(word, commands, 1))


worker = WorkerGroup("worker", commands={"start": start_worker})
