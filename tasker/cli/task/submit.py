"""`tasker task submit`: submission of a task for the workers of a fleet."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from tasker.cli.connection import FORMAT, actor, print_as
from tasker.cli.next_commands import next_text, watch_command
from tasker.cli.options import SECONDS
from tasker.cli.place.options import fleet_options, run_on_fleet
from tasker.cli.place.places import FleetTarget
from tasker.cli.render.values import echo, screen_width
from tasker.cli.task.duplicates import name_existing_task
from tasker.cli.task.options import task_input, task_options
from tasker.errors import UsageError

if TYPE_CHECKING:
    from tasker.cli.place.fleet import Fleet
    from tasker.services.reports import TaskReport
    from tasker.services.submitting.submission import OnDuplicate, Submission, SubmissionResult


ON_DUPLICATE = ("refuse", "return")


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
    instead, so that a script may be run twice.

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
        click.echo(f"{'submitted' if submitted.created else 'already exists:'} {submitted.task_uuid}", err=True)
    if not wait:
        row = {"task_uuid": submitted.task_uuid, "status": state, "created": submitted.created}
        print_as(form, row, lambda row: row["task_uuid"])
        return
    raise SystemExit(_wait(place, submitted.task_uuid, timeout, form))


def _submit_batch(
    place: FleetTarget, target: str | None, file: IO[bytes], on_duplicate: OnDuplicate, form: str, **options: Any
) -> int:
    """Submit a task for each line; return the exit code."""
    from tasker.cli.task.batch import Defaults, submit_all

    alone = {"given": "--input", "settings": "--set", "idempotency_key": "--idempotency-key", "wait": "--wait"}
    for name, option in alone.items():
        if options[name]:
            raise click.UsageError(f"{option} is for a single task: with --batch, put it in the lines of the file")
    defaults = Defaults(target, {name: options[name] for name in ("priority", "tags", "run_at", "delay", "expires_in")})
    refused = run_on_fleet(place, lambda app: submit_all(app, file, defaults, on_duplicate, form))
    return 1 if refused else 0


def _request(given: str | None, settings: tuple[str, ...], **options: Any) -> Submission:
    from tasker.services.submitting.submission import Submission

    return Submission(task_input(given, settings), initiator=actor(), source_system="tasker task submit", **options)


async def _submit(
    app: Fleet, *, target: str, request: Submission, on_duplicate: OnDuplicate
) -> tuple[SubmissionResult, str]:
    from tasker.services.authoring.targets import registered_name, unknown_target
    from tasker.services.server.bulk_submission import TemplateSubmission

    try:
        with unknown_target(target):
            order = TemplateSubmission(*registered_name(target), request)
            submitted = await app.submit_order(order, on_duplicate=on_duplicate)
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
