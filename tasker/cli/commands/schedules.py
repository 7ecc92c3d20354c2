"""`tasker schedule`: list, create, preview, pause, trigger, backfill and delete schedules."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from tasker.cli.commands.task_submit import task_input
from tasker.cli.connection import FORMAT, actor, print_as
from tasker.cli.options import moment
from tasker.cli.render.values import date_time, pretty_json, table
from tasker.cli.suggestions import GuessingGroup
from tasker.cli.target import FleetTarget, fleet_options, run_on_fleet
from tasker.errors import UsageError
from tasker.services.wording import counted

if TYPE_CHECKING:
    from tasker.cli.remote.fleet import Fleet
    from tasker.views.schedules import Backfill, Schedule, ScheduleFire, UpcomingFire

SCHEDULE = click.argument("name", metavar="NS/TEMPLATE/NAME")
REASON = click.option("--reason", default="", metavar="TEXT", help="Reason, stored with the action.")
KEYS = ("cron", "every", "timezone", "missed_fire", "overlap", "dst_gap", "dst_overlap", "jitter")
SHOWN_TIMES = 20
"""Fire times that a backfill prints."""


def moments(ctx: click.Context, param: click.Parameter, text: str | None) -> datetime | None:
    """Return the time of an option; a date is its midnight, without a zone in that of this machine."""
    return None if text is None else moment(text)


@click.command("list")
@click.option("--namespace", metavar="NAME", help="Filter by namespace.")
@click.option("--template", metavar="NAME", help="Filter by template.")
@click.option("--limit", type=click.IntRange(1, 500), default=100, show_default=True, help="Maximum number of rows.")
@FORMAT
@fleet_options
def list_schedules(namespace: str | None, template: str | None, limit: int, form: str, place: FleetTarget) -> None:
    """List schedules with their next fire time, in your time zone.

    \b
    Examples:
      tasker schedule list
      tasker schedule list --namespace reports --format json
    """
    which: dict[str, Any] = {"namespace": namespace, "template": template}
    print_as(form, run_on_fleet(place, lambda app: app.schedules.list(**which, limit=limit)), _list_text)


def _list_text(found: Sequence[Schedule]) -> str:
    if not found:
        return "no schedules"
    rows = [
        (each.address, _when(each), each.timezone, each.state, date_time(each.next_at) or "-", _last(each.last))
        for each in found
    ]
    return table(("SCHEDULE", "WHEN", "ZONE", "STATE", "NEXT", "LAST"), rows)


def _when(each: Schedule) -> str:
    return str(each.keys["cron"]) if "cron" in each.keys else f"every {each.keys['every']}"


def _last(fire: ScheduleFire | None) -> str:
    return "-" if fire is None else f"{date_time(fire.fire_at)} {fire.outcome}"


@click.command()
@SCHEDULE
@click.option("--limit", type=click.IntRange(1, 500), default=10, show_default=True, help="Maximum number of fires.")
@FORMAT
@fleet_options
def show(name: str, limit: int, form: str, place: FleetTarget) -> None:
    """Show a schedule, why it does or does not fire, and its newest fires.

    \b
    Example:
      tasker schedule show reports/nightly_report/nightly
    """

    async def read(app: Fleet) -> dict[str, Any]:
        return {"schedule": await app.schedules.get(name), "fires": await app.schedules.fires(name, limit=limit)}

    print_as(form, run_on_fleet(place, read), _show_text)


def _show_text(found: dict[str, Any]) -> str:
    schedule: Schedule = found["schedule"]
    keys = {key: value for key, value in schedule.keys.items() if key != "context"}
    source = f"declared by version {schedule.version}" if schedule.declared else "created by an operator"
    version = "" if schedule.declared else f", for version {schedule.version or 'registered last'}"
    lines = [
        click.style(schedule.address, bold=True) + f"  {schedule.state}",
        f"→ {schedule.sentence}",
        f"{source}{version}",
        *(f"  {key:<14} {value}" for key, value in keys.items()),
    ]
    if "context" in schedule.keys:
        lines.append(f"  context        {pretty_json(schedule.keys['context'])}")
    fires: Sequence[ScheduleFire] = found["fires"]
    return "\n".join([*lines, "", _fires_text(fires)])


def _fires_text(fires: Sequence[ScheduleFire]) -> str:
    if not fires:
        return "it has not fired yet"
    rows = [(date_time(f.fire_at), f.kind, f.outcome, f.task_uuid or "-", _detail(f)) for f in fires]
    return table(("FIRE TIME", "KIND", "OUTCOME", "TASK", ""), rows)


def _detail(fire: ScheduleFire) -> str:
    detail = fire.detail or {}
    if "error" in detail:
        return str(detail["error"]).splitlines()[0]
    if "count" in detail:
        least = "more than " if detail.get("more") else ""
        return f"{least}{counted(detail['count'], 'fire time')} since {date_time(detail['from'])}"
    by = f"by {detail['actor']}" if detail.get("actor") else fire.task_state or ""
    return f"{by}: {detail['reason']}" if detail.get("reason") else by


@click.command("next")
@SCHEDULE
@click.option("--count", type=click.IntRange(1, 100), default=10, show_default=True, help="Number of fire times.")
@click.option("--after", callback=moments, metavar="TIME", help="Fire times after this time.  [default: now]")
@FORMAT
@fleet_options
def next_fires(name: str, count: int, after: datetime | None, form: str, place: FleetTarget) -> None:
    """Print the next fire times in the zone of the schedule and in yours, also of a paused schedule.

    \b
    Example:
      tasker schedule next reports/nightly_report/nightly --after 2027-03-27
    """
    found = run_on_fleet(place, lambda app: app.schedules.upcoming(name, count=count, after=after))
    print_as(form, found, _upcoming_text)


def _upcoming_text(fires: Sequence[UpcomingFire]) -> str:
    rows = [(fire.local, date_time(fire.fire_at), fire.note or "") for fire in fires]
    return table(("IN ITS ZONE", "IN YOURS", ""), rows) if fires else "it has no fire times any more"


@click.command()
@SCHEDULE
@click.option("--cron", metavar="EXPR", help="Cron expression of 5 fields, or of 6 with seconds in front.")
@click.option("--every", metavar="TIME", help="Time between fire times: 15m, 6h.")
@click.option("--timezone", metavar="ZONE", help="IANA time zone, such as Europe/Berlin.  [default: UTC]")
@click.option("--missed-fire", metavar="once|all|skip", help="Fire times that passed while no process ran.")
@click.option("--overlap", metavar="skip|queue|allow|cancel_running", help="Fire times while a task is open.")
@click.option("--dst-gap", metavar="next|skip", help="Local times that do not exist.")
@click.option("--dst-overlap", metavar="first|both", help="Local times that occur twice.")
@click.option("--jitter", metavar="TIME", help="Longest fixed delay of all fires.")
@click.option("--start", metavar="TIME", callback=moments, help="First possible fire time.")
@click.option("--end", metavar="TIME", callback=moments, help="No fire times from then on.")
@click.option("--skip-date", "skip_dates", metavar="DATE", multiple=True, help="Date without fires; repeatable.")
@click.option("--input", "given", metavar="JSON|@FILE|-", help="Input of its tasks; - is standard input.")
@click.option("--set", "settings", metavar="KEY=VALUE", multiple=True, help="Set one input value; repeatable.")
@click.option("--set-from", metavar="KEY=VALUE", multiple=True, help="Input value from the fire: day=fire_date.")
@click.option("--version", metavar="V", help="Version of the template.  [default: the one registered last]")
@click.option("--overwrite", is_flag=True, help="Replace a schedule that was created like this.")
@FORMAT
@fleet_options
def create(
    name: str,
    given: str | None,
    settings: tuple[str, ...],
    set_from: tuple[str, ...],
    version: str | None,
    overwrite: bool,
    form: str,
    place: FleetTarget,
    **options: Any,
) -> None:
    """Create a schedule of a registered template. A template can also declare its schedules itself.

    \b
    Examples:
      tasker schedule create reports/nightly_report/hourly --every 1h
      tasker schedule create reports/nightly_report/weekdays --cron "0 7 * * MON-FRI" --timezone Europe/Berlin \\
        --set kind=brief --set-from day=fire_date
    """
    keys = {key: options[key] for key in KEYS if options[key] is not None}
    keys |= {key: options[key].isoformat() for key in ("start", "end") if options[key] is not None}
    if options["skip_dates"]:
        keys["skip_dates"] = list(options["skip_dates"])
    if given is not None or settings:
        keys["context"] = task_input(given, settings)
    if set_from:
        keys["context_from"] = dict(map(_pair, set_from))

    async def act(app: Fleet) -> Schedule:
        more: dict[str, Any] = {"version": version, "overwrite": overwrite, "actor": actor()}
        return await app.schedules.create(name, keys, **more)

    print_as(form, run_on_fleet(place, act, operates=True), lambda made: f"created {made.address}: {made.sentence}")


def _pair(text: str) -> tuple[str, str]:
    key, found, value = text.partition("=")
    if not found or not key:
        raise UsageError(f"--set-from: expected KEY=VALUE, got {text!r}", hint="for example --set-from day=fire_date")
    return key, value


@click.command()
@SCHEDULE
@REASON
@FORMAT
@fleet_options
def pause(name: str, reason: str, form: str, place: FleetTarget) -> None:
    """Pause a schedule: it submits nothing until it is resumed. Open tasks continue."""

    async def act(app: Fleet) -> dict[str, Any]:
        return {"schedule": name, "changed": await app.schedules.pause(name, actor=actor(), reason=reason)}

    print_as(form, run_on_fleet(place, act, operates=True), lambda done: _changed_text(done, "paused", "is already"))


@click.command()
@SCHEDULE
@REASON
@FORMAT
@fleet_options
def resume(name: str, reason: str, form: str, place: FleetTarget) -> None:
    """Resume a paused schedule. Fire times of the pause get no tasks; `tasker schedule backfill` submits them."""

    async def act(app: Fleet) -> dict[str, Any]:
        return {"schedule": name, "changed": await app.schedules.resume(name, actor=actor(), reason=reason)}

    print_as(
        form, run_on_fleet(place, act, operates=True), lambda done: _changed_text(done, "resumed", "is not paused")
    )


def _changed_text(done: dict[str, Any], word: str, other: str) -> str:
    if done["changed"]:
        return f"{word} {done['schedule']}"
    return f"{done['schedule']} {other if other.startswith('is not') else f'{other} {word}'}"


@click.command()
@SCHEDULE
@REASON
@FORMAT
@fleet_options
def delete(name: str, reason: str, form: str, place: FleetTarget) -> None:
    """Delete a schedule with its history; its tasks stay.

    One that a template declares is deleted by a version without it, and can be deleted here afterwards.
    """

    async def act(app: Fleet) -> dict[str, Any]:
        await app.schedules.delete(name, actor=actor(), reason=reason)
        return {"schedule": name, "changed": True}

    print_as(form, run_on_fleet(place, act, operates=True), lambda done: f"deleted {done['schedule']}")


@click.command()
@SCHEDULE
@REASON
@FORMAT
@fleet_options
def trigger(name: str, reason: str, form: str, place: FleetTarget) -> None:
    """Submit a task of a schedule now, also while it is paused or has an open task, and print its identifier."""

    async def act(app: Fleet) -> dict[str, Any]:
        return {"task_uuid": await app.schedules.trigger(name, actor=actor(), reason=reason)}

    print_as(form, run_on_fleet(place, act, operates=True), lambda done: str(done["task_uuid"]))


@click.command()
@SCHEDULE
@click.option("--from", "begin", callback=moments, required=True, metavar="TIME", help="Begin of the span.")
@click.option("--to", "end", callback=moments, required=True, metavar="TIME", help="End of the span, exclusive.")
@click.option("--dry-run", is_flag=True, help="Print the fire times; change nothing.")
@REASON
@FORMAT
@fleet_options
def backfill(
    name: str, begin: datetime, end: datetime, dry_run: bool, reason: str, form: str, place: FleetTarget
) -> None:
    """Submit the tasks of past fire times, except those that have one; one after the other, or with `overlap: allow`
    all at once.

    \b
    Example:
      tasker schedule backfill reports/nightly_report/nightly --from 2026-11-01 --to 2026-11-15 --dry-run
    """

    async def act(app: Fleet) -> Backfill:
        if dry_run:
            return await app.schedules.plan_backfill(name, begin, end)
        return await app.schedules.backfill(name, begin, end, actor=actor(), reason=reason)

    print_as(form, run_on_fleet(place, act, operates=not dry_run), _backfill_text)


def _backfill_text(found: Backfill) -> str:
    done = (
        f"; {counted(found.left_out, 'fire time')} left out, which have a task or wait for it" if found.left_out else ""
    )
    if not found.fires:
        return f"no fire times to submit{done}"
    word = "queued" if found.started else "would submit"
    times = [f"  {date_time(fire)}" for fire in found.fires[:SHOWN_TIMES]]
    more = len(found.fires) - len(times)
    return "\n".join(
        [f"{word} {counted(len(found.fires), 'task')}{done}:", *times, *([f"  and {more} more"] if more else [])]
    )


@click.group(cls=GuessingGroup)
def schedule() -> None:
    """List, create, preview, pause, trigger and backfill schedules."""


for command in (list_schedules, show, next_fires, create, pause, resume, trigger, backfill, delete):
    schedule.add_command(command)
