"""`tasker analytics`: recent statistics of tasks, and bottlenecks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from tasker.cli.connection import FORMAT, print_as
from tasker.cli.guessing import GuessingGroup
from tasker.cli.place.options import fleet_options, run_on_fleet
from tasker.cli.place.places import FleetTarget
from tasker.cli.render.values import counted, duration
from tasker.lifecycle.scaling import BY_DEFAULT, ScalingSettings

if TYPE_CHECKING:
    from tasker.services.fleet.analytics import Bottlenecks, Performance, SlowItem, VersionHistory
    from tasker.services.fleet.scaling import ScalingAdvice


@click.group(cls=GuessingGroup)
def analytics() -> None:
    """Show recent statistics of tasks and bottlenecks, based on at most the newest 20,000 tasks."""


@analytics.command()
@click.option("--hours", type=click.IntRange(1, 720), default=1, show_default=True, help="Tasks submitted since then.")
@FORMAT
@fleet_options
def performance(hours: int, form: str, place: FleetTarget) -> None:
    """Show rates and averages."""
    print_as(form, run_on_fleet(place, lambda app: app.analytics.performance(hours=hours)), _performance)


@analytics.command()
@click.option("--hours", type=click.IntRange(1, 720), default=24, show_default=True, help="Tasks submitted since then.")
@click.option(
    "--limit", type=click.IntRange(1, 100), default=10, show_default=True, help="Maximum number of rows in each table."
)
@click.option(
    "--min-executions", type=click.IntRange(1), default=1, show_default=True, help="Minimum number of executions."
)
@FORMAT
@fleet_options
def bottlenecks(form: str, place: FleetTarget, **which: int) -> None:
    """Show the slowest steps and templates, with recommendations."""
    found = run_on_fleet(place, lambda app: app.analytics.bottlenecks(**which))
    print_as(form, found, _bottlenecks)


@analytics.command()
@click.argument("template", metavar="NAMESPACE/NAME")
@FORMAT
@fleet_options
def versions(template: str, form: str, place: FleetTarget) -> None:
    """Compare the versions of a template, by up to 1,000 of the newest completed and 1,000 other ended tasks of each.

    \b
    Example:
      tasker analytics versions shop/checkout
    """
    from tasker.services.authoring.targets import registered_name

    namespace, name, _ = registered_name(template)
    found = run_on_fleet(place, lambda app: app.analytics.versions(namespace, name))
    print_as(form, found, _versions)


@analytics.command("scaling")
@click.option("--min-workers", type=click.IntRange(0), default=BY_DEFAULT.min_workers, show_default=True)
@click.option("--max-workers", type=click.IntRange(0), default=BY_DEFAULT.max_workers, show_default=True)
@click.option(
    "--scale-up-depth",
    type=click.IntRange(0),
    default=BY_DEFAULT.scale_up_depth,
    show_default=True,
    help="Waiting steps above which a worker is added.",
)
@click.option(
    "--scale-down-depth",
    type=click.IntRange(0),
    default=BY_DEFAULT.scale_down_depth,
    show_default=True,
    help="Waiting steps below which a worker is removed.",
)
@click.option(
    "--steps-per-worker",
    type=click.IntRange(1),
    default=BY_DEFAULT.steps_per_worker,
    show_default=True,
    help="Steps per worker, used while the speed of steps is unknown.",
)
@click.option(
    "--clear-within-seconds",
    type=click.FloatRange(0, min_open=True),
    default=BY_DEFAULT.clear_within_seconds,
    show_default=True,
    help="Add workers when the current ones need longer than this for the waiting steps.",
)
@click.option(
    "--cooldown-seconds",
    type=click.FloatRange(0),
    default=BY_DEFAULT.cooldown_seconds,
    show_default=True,
    help="Remove workers only when none has started or stopped for this long.",
)
@FORMAT
@fleet_options
def recommend(form: str, place: FleetTarget, **settings: Any) -> None:
    """Recommend the number of workers of each namespace, from the number of waiting steps and the throughput.

    \b
    Example:
      tasker analytics scaling --max-workers 20
    """
    found = run_on_fleet(place, lambda app: app.analytics.scaling(ScalingSettings(**settings)))
    print_as(form, found, _scaling)


def _scaling(found: Sequence[ScalingAdvice]) -> str:
    from tasker.cli.render.table import table

    rows = [
        (
            each.namespace,
            f"{each.workers} -> {each.recommended_workers}",
            f"{each.in_hand}/{each.slots}",
            str(each.depth),
            "" if each.drain_per_second is None else f"{each.drain_per_second:.1f}/s",
            "" if each.step_seconds is None else _duration(each.step_seconds),
            each.reason,
        )
        for each in found
    ]
    return (
        table(("namespace", "workers", "in hand", "waiting", "ended", "step", "why"), rows) if rows else "no namespaces"
    )


def _performance(found: Performance) -> str:
    ended = f"{found.completed:,} complete, {found.failed:,} failed"
    return "\n".join(
        [
            f"tasks       {found.total:,}: {ended}, {found.active:,} open",
            f"rates       {found.completion_rate:.1%} complete, {found.error_rate:.1%} failed",
            f"throughput  {found.tasks_per_hour:,} tasks and {counted(found.steps_per_hour, 'step')} an hour",
            f"durations   task {duration(found.task_seconds * 1000)}, step {duration(found.step_seconds * 1000)}",
            f"health      {found.health:.2f} of 1",
        ]
    )


def _bottlenecks(found: Bottlenecks) -> str:
    parts = [_table("slowest steps", found.steps), _table("slowest templates", found.tasks)]
    return "\n\n".join([*parts, "\n".join(found.recommendations) or "no problems found"])


def _table(title: str, slow: Sequence[SlowItem]) -> str:
    from tasker.cli.render.table import table

    rows = [
        (
            each.name,
            str(each.executions),
            f"{each.error_rate:.0%}",
            *map(_duration, (each.mean_seconds, each.max_seconds)),
        )
        for each in slow
    ]
    return table((title, "runs", "failed", "mean", "longest"), rows) if rows else f"{title}: none"


def _versions(found: Sequence[VersionHistory]) -> str:
    from tasker.cli.render.table import table

    rows = [
        (
            each.version,
            f"{each.registered_at:%Y-%m-%d %H:%M}",
            str(each.executions),
            f"{each.error_rate:.0%}" if each.executions else "",
            *(map(_duration, (each.mean_seconds, each.max_seconds)) if each.executions else ("", "")),
            f"{each.last_at:%Y-%m-%d %H:%M}" if each.last_at else "",
        )
        for each in found
    ]
    return table(("version", "registered", "tasks", "failed", "mean", "longest", "last end"), rows)


def _duration(seconds: float) -> str:
    return duration(seconds * 1000)
