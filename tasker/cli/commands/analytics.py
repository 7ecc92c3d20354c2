"""`tasker analytics`: recent statistics of tasks, and bottlenecks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from tasker.cli.connection import FORMAT, print_as
from tasker.cli.suggestions import GuessingGroup
from tasker.cli.target import FleetTarget, fleet_options, run_on_fleet
from tasker.services.fleet.scaling import BY_DEFAULT, ScalingSettings
from tasker.services.wording import counted, duration

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
    report = run_on_fleet(place, lambda app: app.analytics.bottlenecks(**which))
    print_as(form, report, _bottlenecks)


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
    from tasker.services.workflows.targets import registered_name

    namespace, name, _ = registered_name(template)
    comparison = run_on_fleet(place, lambda app: app.analytics.versions(namespace, name))
    print_as(form, comparison, _versions)


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
    recommendations = run_on_fleet(place, lambda app: app.analytics.scaling(ScalingSettings(**settings)))
    print_as(form, recommendations, _scaling)


def _scaling(advice: Sequence[ScalingAdvice]) -> str:
    from tasker.cli.render.values import table

    rows = [
        (
            row.namespace,
            f"{row.workers} -> {row.recommended_workers}",
            f"{row.in_hand}/{row.slots}",
            str(row.depth),
            "" if row.drain_per_second is None else f"{row.drain_per_second:.1f}/s",
            "" if row.step_seconds is None else _duration(row.step_seconds),
            row.reason,
        )
        for row in advice
    ]
    return (
        table(("namespace", "workers", "in flight", "waiting", "ended", "step", "why"), rows)
        if rows
        else "no namespaces"
    )


def _performance(performance: Performance) -> str:
    steps = counted(performance.steps_per_hour, "step")
    means = [duration(seconds * 1000) for seconds in (performance.task_seconds, performance.step_seconds)]
    ended = f"{performance.completed:,} complete, {performance.failed:,} failed"
    return "\n".join(
        [
            f"tasks       {performance.total:,}: {ended}, {performance.active:,} open",
            f"rates       {performance.completion_rate:.1%} complete, {performance.error_rate:.1%} failed",
            f"throughput  {performance.tasks_per_hour:,} tasks and {steps} an hour",
            f"durations   task {means[0]}, step {means[1]}",
            f"health      {performance.health:.2f} of 1",
        ]
    )


def _bottlenecks(bottlenecks: Bottlenecks) -> str:
    parts = [_table("slowest steps", bottlenecks.steps), _table("slowest templates", bottlenecks.tasks)]
    return "\n\n".join([*parts, "\n".join(bottlenecks.recommendations) or "no problems found"])


def _table(title: str, slow: Sequence[SlowItem]) -> str:
    from tasker.cli.render.values import table

    rows = [
        (
            row.name,
            str(row.executions),
            f"{row.error_rate:.0%}",
            *map(_duration, (row.mean_seconds, row.max_seconds)),
        )
        for row in slow
    ]
    return table((title, "runs", "failed", "mean", "longest"), rows) if rows else f"{title}: none"


def _versions(versions: Sequence[VersionHistory]) -> str:
    from tasker.cli.render.values import table

    rows = [
        (
            row.version,
            f"{row.registered_at:%Y-%m-%d %H:%M}",
            str(row.executions),
            f"{row.error_rate:.0%}" if row.executions else "",
            *(map(_duration, (row.mean_seconds, row.max_seconds)) if row.executions else ("", "")),
            f"{row.last_at:%Y-%m-%d %H:%M}" if row.last_at else "",
        )
        for row in versions
    ]
    return table(("version", "registered", "tasks", "failed", "mean", "longest", "last end"), rows)


def _duration(seconds: float) -> str:
    return duration(seconds * 1000)
