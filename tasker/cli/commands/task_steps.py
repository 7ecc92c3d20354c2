"""`tasker task steps` and related commands: display of steps, and repairs under their published names."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC
from typing import TYPE_CHECKING, Any

import click

from tasker.cli.connection import FORMAT, actor, print_as
from tasker.cli.covering import SHOW_SENSITIVE, seen
from tasker.cli.suggestions import GuessingGroup
from tasker.cli.target import FleetTarget, find_task, fleet_options, looks_like_a_task, run_on_fleet
from tasker.engine.states.step import StepState
from tasker.errors import StepNotFound
from tasker.views.model import encode

if TYPE_CHECKING:
    from tasker.cli.remote.fleet import Fleet
    from tasker.views.steps import Attempt, Step, StepInputs


class StepGroup(GuessingGroup):
    """Group in which `tasker task step TASK STEP` shows a step, unless the first word is a command."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; the prefix of a task's identifier in its place selects `show`."""
        names_task = len(args) > 1 and looks_like_a_task(args[0]) and self.get_command(ctx, args[0]) is None
        return super().resolve_command(ctx, ["show", *args] if names_task else args)


@click.command()
@click.argument("task_uuid", metavar="TASK_UUID")
@SHOW_SENSITIVE
@FORMAT
@fleet_options
def steps(task_uuid: str, show_sensitive: bool, form: str, place: FleetTarget) -> None:
    """Show the state of each step of a task, and whether it can run."""

    async def read(app: Fleet) -> Sequence[Step]:
        task = await find_task(app.tasks, task_uuid)
        return await seen(app, show_sensitive).views.steps(task)

    _print(form, run_on_fleet(place, read), _steps_text)


@click.command()
@click.argument("task_uuid", metavar="TASK_UUID")
@click.argument("step", metavar="STEP")
@SHOW_SENSITIVE
@FORMAT
@fleet_options
def show(task_uuid: str, step: str, show_sensitive: bool, form: str, place: FleetTarget) -> None:
    """Show one step: STEP is its name or its UUID."""

    async def read(app: Fleet) -> Step:
        task = await find_task(app.tasks, task_uuid)
        return await _step(seen(app, show_sensitive), task, step)

    _print(form, run_on_fleet(place, read), _step_text)


@click.command()
@click.argument("task_uuid", metavar="TASK_UUID")
@click.argument("step", metavar="STEP", required=False)
@SHOW_SENSITIVE
@FORMAT
@fleet_options
def audit(task_uuid: str, step: str | None, show_sensitive: bool, form: str, place: FleetTarget) -> None:
    """Show the audit records of stored results and failures, newest first: of a whole task or of one step."""

    async def read(app: Fleet) -> Sequence[Attempt]:
        task = await find_task(app.tasks, task_uuid)
        one = (await _step(app, task, step)).step_uuid if step else None
        return await seen(app, show_sensitive).views.audit(task, one)

    _print(form, run_on_fleet(place, read), _audit_text)


@click.command()
@click.argument("task_uuid", metavar="TASK_UUID")
@click.argument("step", metavar="STEP")
@SHOW_SENSITIVE
@FORMAT
@fleet_options
def inputs(task_uuid: str, step: str, show_sensitive: bool, form: str, place: FleetTarget) -> None:
    """Show the input of a step's handler, with the expressions of its `inputs` evaluated.

    \b
    Example:
      tasker task step inputs 0199c1f4-8a52 charge
    """

    async def read(app: Fleet) -> StepInputs:
        task = await find_task(app.tasks, task_uuid)
        step_uuid = (await _step(app, task, step)).step_uuid
        return await seen(app, show_sensitive).views.inputs(task, step_uuid)

    _print(form, run_on_fleet(place, read), _inputs_text)


def _repair(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add TASK_UUID, STEP, --reason and --format, which every repair has."""
    for decorate in (
        fleet_options,
        FORMAT,
        click.option("--reason", default="", metavar="TEXT", help="Reason, stored in the history."),
        click.argument("step", metavar="STEP"),
        click.argument("task_uuid", metavar="TASK_UUID"),
    ):
        command = decorate(command)
    return command


@click.command("reset-step")
@click.option(
    "--reset-by", default=actor, metavar="NAME", help="Actor recorded in the audit log; defaults to your user name."
)
@_repair
def reset_step(reset_by: str, reason: str, **which: Any) -> None:
    """Reset a step in error, so that it runs again with its full number of attempts (`tasker task step reset`)."""
    confirmation = ("Step reset successfully!", reason, "Reset by", reset_by)
    _repair_step(
        confirmation, lambda app, task, step: app.steps.reset(task, step, actor=reset_by, reason=reason), **which
    )


@click.command("resolve-step")
@click.option(
    "--resolved-by", default=actor, metavar="NAME", help="Actor recorded in the audit log; defaults to your user name."
)
@_repair
def resolve_step(resolved_by: str, reason: str, **which: Any) -> None:
    """Resolve a step without a result (`tasker task step resolve`)."""
    confirmation = ("Step resolved manually!", reason, "Resolved by", resolved_by)
    _repair_step(
        confirmation, lambda app, task, step: app.steps.resolve(task, step, actor=resolved_by, reason=reason), **which
    )


@click.command("complete-step")
@click.option("--result", required=True, metavar="JSON|@FILE|-", help="Result, a JSON object; - is standard input.")
@click.option("--metadata", metavar="JSON|@FILE|-", help="Metadata stored with the result, a JSON object.")
@click.option(
    "--completed-by", default=actor, metavar="NAME", help="Actor recorded in the audit log; defaults to your user name."
)
@_repair
def complete_step(result: str, metadata: str | None, completed_by: str, reason: str, **which: Any) -> None:
    """Complete a step with a given result (`tasker task step complete`)."""
    from tasker.cli.run.input import read_object

    step_result = read_object(result, "--result", read_stdin=sys.stdin.read)
    more = read_object(metadata, "--metadata", read_stdin=sys.stdin.read) if metadata else None
    confirmation = ("Step completed manually with results!", reason, "Completed by", completed_by)
    who = {"actor": completed_by, "reason": reason}
    _repair_step(
        confirmation, lambda app, task, step: app.steps.complete(task, step, step_result, metadata=more, **who), **which
    )


def _repair_step(
    texts: tuple[str, str, str, str],
    act: Callable[[Fleet, str, str], Awaitable[None]],
    *,
    task_uuid: str,
    step: str,
    form: str,
    place: FleetTarget,
) -> None:
    async def find_and_act(app: Fleet) -> Step:
        task = await find_task(app.tasks, task_uuid)
        found = await _step(app, task, step)
        await act(app, task, found.name)
        return await app.views.step(task, found.step_uuid)

    title, reason, by, who = texts
    lines = ("New state: {current_state}", *([f"Reason: {reason}"] if reason else []), f"{by}: {who}")
    text = "\n".join((f"✓ {title}", *(f"  {line}" for line in lines)))
    _print(
        form,
        run_on_fleet(place, find_and_act, operates=True),
        lambda done: text.replace("{current_state}", done.state),
    )


def _print(form: str, value: Any, render: Callable[[Any], str]) -> None:
    """Print views as the API sends them, or as text."""
    kind = Sequence[type(value[0])] if isinstance(value, Sequence) and value else type(value)  # type: ignore[misc]
    print_as(form, encode(kind, value) if form == "json" else value, render)


async def _step(app: Fleet, task: str, step: str) -> Step:
    """Return the step with this name or UUID. Raises `StepNotFound`."""
    steps = await app.views.steps(task)
    for found in steps:
        if step in (found.name, found.step_uuid):
            return found
    names = ", ".join(found.name for found in steps[:20])
    raise StepNotFound(f"task {task} has no step {step!r}", hint=f"expected one of: {names}")


def _inputs_text(view: StepInputs) -> str:
    import json

    source = "" if view.evaluated else " (the task's: the step has no `inputs`)"
    lines = [f"Input of step {view.name}, attempt {view.attempt}{source}:"]
    lines += [f"  {name}: {json.dumps(value, ensure_ascii=False)}" for name, value in view.inputs.items()]
    for name, problem in view.problems.items():
        lines += [f"  {name}: no value", *(f"    {line}" for line in problem.splitlines())]
    return "\n".join(lines)


def _steps_text(steps: Sequence[Step]) -> str:
    lines = [f"✓ Found {len(steps)} workflow steps:"]
    for step in steps:
        lines += [f"  Step: {step.name} ({step.step_uuid})", *(f"    {line}" for line in _facts(step))]
        if step.retry_eligible and step.state == StepState.WAITING_FOR_RETRY:
            lines.append("    ⚠ Retry eligible")
    return "\n".join(lines)


def _step_text(step: Step) -> str:
    more = [f"UUID: {step.step_uuid}", f"Name: {step.name}", *_facts(step)]
    more.append(f"Retry eligible: {_word(step.retry_eligible)}")
    if step.last_failure_at:
        more.append(f"Last failure: {step.last_failure_at.astimezone(UTC).isoformat()}")
    if step.last_error:
        more.append(f"Last error: {step.last_error}")
    return "\n".join(("✓ Step Details:", *(f"  {line}" for line in more)))


def _facts(step: Step) -> tuple[str, ...]:
    return (
        f"State: {step.state}",
        f"Dependencies satisfied: {_word(step.dependencies_satisfied)}",
        f"Ready for execution: {_word(step.ready_for_execution)}",
        f"Attempts: {step.attempts}/{step.max_attempts}",
    )


def _word(value: bool) -> str:
    return "true" if value else "false"


def _audit_text(attempts: Sequence[Attempt]) -> str:
    from tasker.cli.render.values import date_time, table

    if not attempts:
        return "no results recorded"
    rows = [
        (
            date_time(entry.recorded_at),
            entry.step_name,
            "result" if entry.success else "failure",
            "-" if entry.execution_time_ms is None else f"{entry.execution_time_ms} ms",
            entry.worker_uuid or "-",
        )
        for entry in attempts
    ]
    return table(("WHEN", "STEP", "OUTCOME", "TOOK", "WORKER"), rows)
