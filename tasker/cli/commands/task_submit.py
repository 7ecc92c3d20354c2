"""`tasker task submit`, `request` and `refused`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from tasker.cli.connection import FORMAT, actor, configured_for, print_as
from tasker.cli.options import PRIORITY_HELP, SECONDS, DatabaseOption, deadline, duration, moment, priority
from tasker.cli.render.outcome import next_text, watch_command
from tasker.cli.render.values import date_time, echo, screen_width
from tasker.cli.target import DatabaseTarget, FleetTarget, fleet_options, run_on_fleet
from tasker.errors import DuplicateTask, IdempotencyKeyReused, UsageError
from tasker.services.wording import one_line

if TYPE_CHECKING:
    from tasker.app.task_requester import TaskRequester
    from tasker.cli.remote.fleet import Fleet
    from tasker.services.submission.submit import OnDuplicate, Submission, SubmissionResult
    from tasker.views.task_lists import RefusedMessage
    from tasker.views.tasks import TaskReport


@contextmanager
def name_existing_task(arguments: str, advice: str = "") -> Iterator[None]:
    """Raise a duplicate's error with the existing task, its state, the command that shows it, and the `advice`.

    `arguments` are the options that name the fleet of the tasks.
    """
    try:
        yield
    except DuplicateTask as error:
        if error.task_uuid is None or isinstance(error, IdempotencyKeyReused):
            raise
        show = f"to see it: tasker task show {error.task_uuid}{arguments}"
        raise DuplicateTask(
            f"this task already exists: {error.task_uuid}, {error.state}",
            task_uuid=error.task_uuid,
            hint="\n      ".join(filter(None, (show, advice, f"to create another one: {error.hint}"))),
        ) from error


def task_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--input` (`given`), `--set` (`settings`), `--priority`, `--at`, `--in`, `--expires-in`,
    `--deadline`, `--tenant` and `--idempotency-key`."""
    options = (
        click.option(
            "--input", "given", metavar="JSON|@FILE|-", help="Input of the task; - is standard input.  [default: {}]"
        ),
        click.option("--set", "settings", metavar="KEY=VALUE", multiple=True, help="Set one input value; repeatable."),
        click.option("--priority", type=priority, metavar="PRIORITY", help=PRIORITY_HELP),
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
            "--deadline",
            type=deadline,
            metavar="TIME",
            help="Fail the open steps at this time, or so long after the start: 90s, 5m, 36h, 3d.",
        ),
        click.option("--tenant", metavar="NAME", help="Tenant (customer, team or account) of the task."),
        click.option("--callback-url", metavar="URL", help="Post the end of the task to this URL (plugin webhooks)."),
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


@click.command()
@click.argument("target", metavar="NAMESPACE/NAME[:VERSION]")
@task_options
@click.option("--task", "task_uuid", metavar="UUID", help="Task id of an earlier request whose outcome is unknown.")
@FORMAT
@fleet_options
def request(
    target: str, given: str | None, settings: tuple[str, ...], form: str, place: FleetTarget, **options: Any
) -> None:
    """Request a task from an orchestrator, through the broker alone, and print its future identifier.

    For machines that reach the broker but not the database. The template must be registered. Requests that the
    orchestrator refuses are shown by `tasker task refused`. The broker is that of the configuration, or of --backend;
    with --url or --profile it is the server's.

    \b
    Example:
      RABBITMQ_URL=amqp://broker/ tasker task request shop/checkout --set order=7 --backend rabbitmq
    """
    values = task_input(given, settings)
    if isinstance(place, DatabaseTarget):
        task_uuid = asyncio.run(_ask(_requester(place.database), target, values, options))
    else:
        task_uuid = run_on_fleet(place, lambda fleet: fleet.requests.request(target, values, **options))
    print_as(form, {"task_uuid": task_uuid, "status": "requested"}, lambda row: row["task_uuid"])


def _requester(database: DatabaseOption) -> TaskRequester:
    from tasker.app.task_requester import TaskRequester

    return TaskRequester(configuration=configured_for(database))


async def _ask(requester: TaskRequester, target: str, values: dict[str, Any], options: dict[str, Any]) -> str:
    async with requester:
        return await requester.request(target, values, **options)


@click.command()
@click.option("--queue", metavar="NAME", help="Filter by queue.")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="Maximum number of rows.")
@FORMAT
@fleet_options
def refused(form: str, place: FleetTarget, **which: Any) -> None:
    """List refused messages, newest first: task requests and wake-up messages, with the reason."""
    print_as(form, run_on_fleet(place, lambda app: app.tasks.refused(**which)), _refused_text)


def _refused_text(rows: Sequence[RefusedMessage]) -> str:
    from tasker.cli.render.values import table

    if not rows:
        return "no refused messages"
    lines = [(date_time(row.at), row.queue, one_line(row.reason), one_line(_message(row), 80)) for row in rows]
    return table(("at", "queue", "reason", "message"), lines)


def _message(row: RefusedMessage) -> str:
    message = row.message or {}
    return str(message.get("raw", message) if isinstance(message, dict) else message)


ON_DUPLICATE = ("refuse", "return")
OF_LINES = ("priority", "tags", "run_at", "delay", "expires_in", "deadline", "tenant", "callback_url")
"""Options that apply to the lines of a file that do not set them."""


@click.command()
@click.argument("target", metavar="NAMESPACE/NAME[:VERSION]", required=False)
@task_options
@click.option(
    "--on-duplicate",
    type=click.Choice(ON_DUPLICATE),
    default="refuse",
    show_default=True,
    help="If the task exists: exit with 2, or return the existing one.",
)
@click.option(
    "--batch", type=click.File("rb"), metavar="FILE.jsonl|-", help="Submit a task for each line of this file."
)
@click.option("--tag", "tags", metavar="TEXT", multiple=True, help="Tag stored with the task; repeatable.")
@click.option("--wait", is_flag=True, help="Wait until the task has ended, and show it.")
@click.option("--timeout", type=SECONDS, metavar="SECONDS", help="Maximum time to wait (with --wait).")
@FORMAT
@fleet_options
def submit(
    target: str | None,
    place: FleetTarget,
    batch: IO[bytes] | None,
    form: str,
    wait: bool,
    timeout: float | None,
    on_duplicate: OnDuplicate,
    **options: Any,
) -> None:
    """Create a task from a registered template, for the workers that serve its namespace, and print its identifier.

    Nothing runs in this process; `tasker run` is the command that does. `tasker template list` shows the registered
    templates: a worker registers the templates that it serves.

    The template's identity strategy applies: with `strict`, the default, a second task with the same input is refused
    unless it has an --idempotency-key of its own. The error names the existing task; --on-duplicate return prints it
    instead, so that a script may be run twice. If the template says `unique: while_running`, a task that runs under the
    same key is printed in any case; so is one into which the submission was merged (`debounce`).

    \b
    Examples:
      tasker task submit shop/checkout --set order=7
      tasker task submit shop/reminder --set order=7 --in 3d
      tasker task submit shop/checkout:1.2.0 --input @order.json --wait --timeout 60

    With --batch each line of the file is a JSON object as in the REST API: namespace, name, version (or the template of
    the command), context, priority, tags, delay, idempotency_key ... Each line has its own outcome, in order; a failure
    does not affect the others.

    \b
    Exit codes:
      0  submitted; with --wait: complete; with --batch: every line
      1  not submitted (no database, backlog too large); with --wait also:
         failed, cancelled, or not ended within --timeout
      2  a mistake in the command or the input
    """
    if batch is not None:
        raise SystemExit(_submit_batch(place, target, batch, on_duplicate, form, wait=wait, **options))
    if target is None:
        raise click.UsageError("Missing argument 'NAMESPACE/NAME[:VERSION]'; or give a file: --batch FILE.jsonl")
    if timeout is not None and not wait:
        raise click.UsageError("--timeout requires --wait")
    request = _request(**options)
    with name_existing_task(place.arguments(), "to return the existing one: --on-duplicate return"):
        create = partial(_submit, target=target, request=request, on_duplicate=on_duplicate)
        submitted, state = run_on_fleet(place, create)
    if wait or not submitted.created:
        existing = "already runs under this unique key:" if submitted.unique else "already exists:"
        existing = "merged into the task of this debounce key:" if submitted.debounced else existing
        click.echo(f"{'submitted' if submitted.created else existing} {submitted.task_uuid}", err=True)
    if not wait:
        row = {"task_uuid": submitted.task_uuid, "status": state, "created": submitted.created}
        row |= {name: True for name in ("unique", "debounced") if getattr(submitted, name)}
        print_as(form, row, lambda row: row["task_uuid"])
        return
    raise SystemExit(_wait(place, submitted.task_uuid, timeout, form))


def _submit_batch(
    place: FleetTarget, target: str | None, file: IO[bytes], on_duplicate: OnDuplicate, form: str, **options: Any
) -> int:
    """Submit a task for each line; return the exit code."""
    from tasker.cli.commands.task_batch import Defaults, submit_all

    alone = {"given": "--input", "settings": "--set", "idempotency_key": "--idempotency-key", "wait": "--wait"}
    for name, option in alone.items():
        if options[name]:
            raise click.UsageError(f"{option} is for a single task: with --batch, put it in the lines of the file")
    defaults = Defaults(target, {name: options[name] for name in OF_LINES})
    refused = run_on_fleet(place, lambda app: submit_all(app, file, defaults, on_duplicate, form))
    return 1 if refused else 0


def _request(given: str | None, settings: tuple[str, ...], **options: Any) -> Submission:
    from tasker.services.submission.submit import Submission

    return Submission(task_input(given, settings), initiator=actor(), source_system="tasker task submit", **options)


async def _submit(
    app: Fleet, *, target: str, request: Submission, on_duplicate: OnDuplicate
) -> tuple[SubmissionResult, str]:
    from tasker.services.submission.registered import TemplateSubmission
    from tasker.services.workflows.targets import registered_name, unknown_target

    try:
        with unknown_target(target):
            order = TemplateSubmission(*registered_name(target), request)
            submitted = await app.submissions.submit(order, on_duplicate=on_duplicate)
    except UsageError as error:
        if not Path(target).exists():
            raise
        hint = f"register it first: tasker template register {target}; or run it here: tasker run {target}"
        raise UsageError(f"{target} is a file or folder, not a registered template", hint=hint) from error
    return submitted, (await app.tasks.state(submitted.task_uuid))[0]


def _wait(place: FleetTarget, task_uuid: str, timeout: float | None, form: str) -> int:
    """Wait for the task and show its end; return the exit code."""
    from tasker.cli.render.task import report_object, report_text

    async def ended(app: Fleet) -> TaskReport:
        return await app.wait(task_uuid, timeout=timeout)

    try:
        report = run_on_fleet(place, ended)
    except TimeoutError:
        arguments = place.arguments()
        click.echo(f"not ended after {timeout or 0:g} s; see: tasker task show {task_uuid}{arguments}", err=True)
        click.echo(f"the task continues; to watch it: {watch_command(task_uuid, arguments)}", err=True)
        row = {"task_uuid": task_uuid, "status": run_on_fleet(place, lambda app: app.tasks.state(task_uuid))[0]}
        print_as(form, row, lambda row: row["task_uuid"])
        return 1
    print_as(form, report_object(report), lambda _: report_text(report, width=screen_width()))
    if text := next_text(report, place.arguments(), watch_command(task_uuid, place.arguments())):
        echo(text, to=sys.stderr if form == "json" else None)
    return 0 if report.status == "complete" else 1
