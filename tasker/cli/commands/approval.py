"""`tasker approval`: what waits for decisions of persons, and the decisions."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from tasker.cli.connection import FORMAT, actor, print_as
from tasker.cli.render.values import date_time, names_text, pretty_json, table
from tasker.cli.suggestions import GuessingGroup
from tasker.cli.target import FleetTarget, find_task, fleet_options, run_on_fleet

if TYPE_CHECKING:
    from tasker.cli.remote.fleet import Fleet
    from tasker.views.approvals import Approval, ApprovalDetail, ApprovalLink, CountedVote, Decision


@click.group(cls=GuessingGroup)
def approval() -> None:
    """List, show and decide what waits for persons (`type: approval`)."""


@approval.command("list")
@click.option("--mine", is_flag=True, help="Only what you may decide, and have not.")
@click.option("--namespace", metavar="NAME", help="Filter by namespace.")
@click.option("--template", metavar="NAME", help="Filter by template.")
@click.option("--limit", type=click.IntRange(1, 500), default=50, show_default=True, help="Maximum number of rows.")
@FORMAT
@fleet_options
def list_approvals(mine: bool, form: str, place: FleetTarget, **which: Any) -> None:
    """List open approvals, oldest first.

    \b
    Examples:
      tasker approval list --mine
      tasker approval list --namespace finance --template expense
    """
    from tasker.services.approvals import Approver

    async def read(app: Fleet) -> Sequence[Approval]:
        return await app.approvals.list(approver=Approver(actor()) if mine else None, **which)

    print_as(form, run_on_fleet(place, read), _list_text)


@approval.command("show")
@click.argument("task_uuid", metavar="TASK_UUID")
@click.argument("step", metavar="STEP")
@FORMAT
@fleet_options
def show_approval(task_uuid: str, step: str, form: str, place: FleetTarget) -> None:
    """Show the approval of a step: what it shows, who may decide, its form, and the votes.

    \b
    Example:
      tasker approval show 0199c1f4-8a52 approve
    """

    async def read(app: Fleet) -> ApprovalDetail:
        return await app.approvals.get(await find_task(app.tasks, task_uuid), step)

    print_as(form, run_on_fleet(place, read), lambda detail: "\n".join(detail_lines(detail)))


@approval.command("decide")
@click.argument("task_uuid", metavar="TASK_UUID")
@click.argument("step", metavar="STEP")
@click.option("--approve/--reject", "approves", default=None, help="The decision; one of them is required.")
@click.option("--form", "filled", metavar="JSON|@FILE|-", default="{}", help="Values of the form; - is standard input.")
@click.option("--comment", default="", metavar="TEXT", help="Reason, stored with the vote.")
@click.option(
    "--by", metavar="NAME", help="Person who decides; your user name by default. A server with authentication knows."
)
@FORMAT
@fleet_options
def decide_approval(
    task_uuid: str,
    step: str,
    approves: bool | None,
    filled: str,
    comment: str,
    by: str | None,
    form: str,
    place: FleetTarget,
) -> None:
    """Approve or reject, for a step that waits for persons.

    \b
    Examples:
      tasker approval decide 0199c1f4-8a52 approve --approve --form '{"cost_center": "R17"}'
      tasker approval decide 0199c1f4-8a52 approve --reject --comment "no receipt"
    """
    from tasker.cli.run.input import read_object

    if approves is None:
        raise click.UsageError("expected --approve or --reject")
    values = read_object(filled, "--form", read_stdin=sys.stdin.read)

    async def act(app: Fleet) -> CountedVote:
        task = await find_task(app.tasks, task_uuid)
        decision: Decision = "approved" if approves else "rejected"
        return await app.approvals.decide(
            task, step, decision, actor=by or actor(), form=values or None, comment=comment
        )

    print_as(form, run_on_fleet(place, act, operates=True), vote_text)


@approval.command("link")
@click.argument("task_uuid", metavar="TASK_UUID")
@click.argument("step", metavar="STEP")
@click.argument("subject", metavar="NAME")
@FORMAT
@fleet_options
def make_link(task_uuid: str, step: str, subject: str, form: str, place: FleetTarget) -> None:
    """Make a signed link with which the person NAME decides once, without signing in.

    It needs `common.approvals.link_keys` in the configuration. Send it to that person alone.

    \b
    Example:
      tasker approval link 0199c1f4-8a52 approve ann
    """

    async def make(app: Fleet) -> ApprovalLink:
        return await app.approvals.link(await find_task(app.tasks, task_uuid), step, subject)

    print_as(form, run_on_fleet(place, make, operates=True), lambda link: link.url)


def vote_text(vote: CountedVote) -> str:
    """Render what became of a vote."""
    if vote.ended:
        return f"{vote.decision}: {vote.step} has ended as {vote.outcome}"
    return f"{vote.decision}: {vote.step} waits for more votes, {vote.approved} of {vote.quorum} approved"


def _list_text(rows: Sequence[Approval]) -> str:
    if not rows:
        return "nothing waits for a decision"
    lines = [
        (
            row.task_uuid,
            row.step,
            f"{row.namespace}/{row.template}",
            f"{row.approved}/{row.quorum}",
            date_time(row.requested_at),
            date_time(row.until) if row.until else "-",
            names_text(who_decides(row)),
        )
        for row in rows
    ]
    return table(("task", "step", "template", "approved", "requested", "until", "may decide"), lines)


def who_decides(row: Approval) -> list[str]:
    """Return the persons and permissions that may decide."""
    return [*row.subjects, *row.permissions] or ["approvals:decide"]


def detail_lines(detail: ApprovalDetail) -> Iterator[str]:
    """Yield the lines of `tasker approval show`."""
    yield f"{detail.step} of {detail.namespace}/{detail.template}, task {detail.task_uuid}"
    if detail.description:
        yield detail.description
    state = detail.outcome or f"open: {detail.approved} of {detail.quorum} approved"
    yield f"state      {state}{f' at {date_time(detail.ended_at)}' if detail.ended_at else ''}"
    yield f"requested  {date_time(detail.requested_at)}"
    if detail.until:
        yield f"until      {date_time(detail.until)}"
    yield f"may decide {names_text(who_decides(detail))}"
    for name, value in detail.inputs.items():
        yield f"  {name}: {_value(value)}"
    for name, problem in detail.problems.items():
        yield f"  {name}: cannot be shown: {problem}"
    if detail.form and detail.outcome is None:
        yield f"form       {', '.join(_field(name, detail.form) for name in detail.form.get('properties', {}))}"
    for vote in detail.votes:
        comment = f": {_value(vote.comment)}" if vote.comment else ""
        yield f"{vote.decision} by {vote.by} at {date_time(vote.at)} ({vote.via}){comment}"


def _value(value: Any) -> str:
    """Render a value of somebody else; text with line breaks or other controls as JSON, so that it forges no line."""
    return value if isinstance(value, str) and value.isprintable() else pretty_json(value, indent=4).lstrip()


def _field(name: str, form: Any) -> str:
    return f"{name} (required)" if name in form.get("required", ()) else name
