"""`tasker dlq replay` and `tasker dlq replays`: rate-limited replay of the failed steps of a group of tasks."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any, Literal

import click

from tasker.cli.commands.task_watch import since
from tasker.cli.connection import FORMAT, actor, print_as
from tasker.cli.render.values import date_time, echo
from tasker.cli.suggestions import GuessingGroup
from tasker.cli.target import FleetTarget, fleet_options, require_known_filter, run_on_fleet
from tasker.errors import UsageError
from tasker.services.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tasker.cli.remote.fleet import Fleet
    from tasker.services.operators.replays import Replay, ReplayPlan

_RATE = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?:/(?P<unit>s|m|h))?")
_SECONDS = {"s": 1, None: 1, "m": 60, "h": 3600}
LONGEST_PAUSE = 1.0
"""Maximum pause in seconds between two batches of a replay that is followed."""


def rate(ctx: click.Context, param: click.Parameter, text: str) -> float:
    """Parse a rate in tasks per second: `10/s`, `30/m`, `100/h` or a number."""
    from tasker.services.operators.replays import RATES

    match = _RATE.fullmatch(text)
    if match is None:
        raise click.BadParameter(f"{text!r} is not a rate: expected 10/s, 30/m or 100/h")
    per_second = float(match["number"]) / _SECONDS[match["unit"]]
    if not RATES[0] <= per_second <= RATES[1]:
        raise click.BadParameter(f"{text} is {per_second:g} tasks per second: expected {RATES[0]:g} to {RATES[1]:g}")
    return per_second


@click.command()
@click.option("--fingerprint", metavar="F", help="Failure fingerprint; only the steps with this failure run again.")
@click.option("--namespace", metavar="NAME", help="Filter by namespace.")
@click.option("--template", metavar="NAME", help="Filter by template.")
@click.option("--reason", metavar="REASON", help="Filter by the reason of the entry.")
@click.option("--since", type=since, metavar="2h|7d|DATE", help="Only entries created since then.")
@click.option(
    "--limit", type=click.IntRange(1, 100_000), default=100_000, help="Maximum number of tasks, oldest first."
)
@click.option("--all", "everything", is_flag=True, help="Replay all pending entries.")
@click.option("--rate", callback=rate, default="10/s", show_default=True, metavar="N/s", help="Tasks per second.")
@click.option("--note", default="", metavar="TEXT", help="Reason, stored with the tasks and their entries.")
@click.option("--dry-run", is_flag=True, help="Print the plan; change nothing.")
@click.option("--detach", is_flag=True, help="Start in the background and return.")
@FORMAT
@fleet_options
def replay(
    everything: bool, rate: float, note: str, dry_run: bool, detach: bool, form: str, place: FleetTarget, **which: Any
) -> None:
    """Replay the failed steps of many tasks, through the ordinary queues, at a rate of tasks per second.

    The plan is printed first. The entry of a task is closed when its steps are reset; a task that fails again gets a
    new one. Ctrl-C does not stop the replay: workers and orchestrators continue it in their sweeps. `tasker dlq
    replays` pauses, resumes and cancels it. A lost step that may run only once is skipped.

    \b
    Examples:
      tasker dlq groups
      tasker dlq replay --fingerprint 41f0c7a2b9d3e8f1 --dry-run
      tasker dlq replay --fingerprint 41f0c7a2b9d3e8f1 --rate 5/s --note "the provider is back"
    """
    from tasker.services.operators.replays import FailureSelection

    if not everything and not any(which[name] for name in ("fingerprint", "namespace", "template", "reason", "since")):
        raise UsageError("no entries selected", hint="--fingerprint, --namespace, --template, ... or --all")
    group = FailureSelection(**which)

    async def act(app: Fleet) -> ReplayPlan | Replay:
        plan = await app.replays.plan(group)
        await require_known_filter(app, range(plan.tasks), group.namespace, group.template)
        _say(form, _plan_text(plan, rate))
        if dry_run or not plan.tasks:
            return plan
        begun = await app.replays.begin(group, rate=rate, actor=actor(), reason=note)
        if begun.replay_uuid is None:
            return begun
        _say(form, f"replay {begun.replay_uuid}")
        return await (app.replays.get if detach else _follower(app, form))(begun.replay_uuid)

    print_as(form, run_on_fleet(place, act, operates=not dry_run), _end_text)


def _say(form: str, text: str) -> None:
    if form == "text":
        echo(text)


def _follower(app: Fleet, form: str) -> Any:
    async def follow(replay_uuid: str) -> Replay:
        """Advance the replay until it ends or is paused."""
        reported = -1
        while (snapshot := await app.replays.get(replay_uuid)).state == "running":
            if snapshot.replayed + snapshot.skipped != reported:
                reported = snapshot.replayed + snapshot.skipped
                _say(form, f"  {reported}/{snapshot.total}")
            if not await app.replays.advance(replay_uuid):
                await asyncio.sleep(min(LONGEST_PAUSE, 1 / snapshot.rate_per_second))
        return snapshot

    return follow


def _plan_text(plan: ReplayPlan, rate: float) -> str:
    if not plan.tasks:
        return "nothing to replay: no selected entry has a failed step that may run again"
    per_template = ", ".join(f"{name}: {tasks}" for name, tasks in sorted(plan.templates.items()))
    once = f"; {counted(plan.once, 'step')} skipped, because they may run only once" if plan.once else ""
    steps, tasks = counted(plan.steps, "step"), counted(plan.tasks, "task")
    return f"{steps} of {tasks} ({per_template}) in about {plan.tasks / rate:.0f} s{once}"


def _end_text(done: Any) -> str:
    from tasker.services.operators.replays import Replay

    if not isinstance(done, Replay):
        return "nothing was replayed"
    return f"{done.state}: {done.replayed} replayed, {done.skipped} skipped, of {done.total}"


@click.group(cls=GuessingGroup, invoke_without_command=True)
@FORMAT
@fleet_options
@click.pass_context
def replays(ctx: click.Context, form: str, place: FleetTarget) -> None:
    """List replays, newest first; pause, resume, follow or cancel one."""
    if ctx.invoked_subcommand is None:
        print_as(form, run_on_fleet(place, lambda app: app.replays.list()), _list_text)


def _list_text(replays: Sequence[Replay]) -> str:
    from tasker.cli.render.values import table

    if not replays:
        return "no replays"
    rows = [
        (
            row.replay_uuid,
            row.state,
            f"{row.replayed + row.skipped}/{row.total}",
            f"{row.rate_per_second:g}/s",
            row.fingerprint or "-",
            row.actor,
            date_time(row.created_at),
        )
        for row in replays
    ]
    return table(("REPLAY", "STATE", "DONE", "RATE", "FINGERPRINT", "BY", "SINCE"), rows)


def _steering(name: str, state: Literal["running", "paused", "cancelled"], help_text: str) -> None:
    @replays.command(name, help=help_text)
    @click.argument("replay_uuid", metavar="REPLAY")
    @FORMAT
    @fleet_options
    def steer(replay_uuid: str, form: str, place: FleetTarget) -> None:
        print_as(form, run_on_fleet(place, lambda app: app.replays.steer(replay_uuid, state), operates=True), _end_text)


_steering("pause", "paused", "Pause a replay.")
_steering("resume", "running", "Resume a paused replay.")
_steering("cancel", "cancelled", "Cancel a replay; tasks already replayed are not changed.")


@replays.command()
@click.argument("replay_uuid", metavar="REPLAY")
@FORMAT
@fleet_options
def follow(replay_uuid: str, form: str, place: FleetTarget) -> None:
    """Advance a replay from here until it has ended or is paused."""
    print_as(form, run_on_fleet(place, lambda app: _follower(app, form)(replay_uuid)), _end_text)
