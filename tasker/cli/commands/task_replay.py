"""`tasker task replay`: today's handlers on the recorded inputs of a task."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tasker.cli.connection import FORMAT, print_as
from tasker.cli.target import FleetTarget, find_task, fleet_options, run_on_fleet
from tasker.services.wording import counted

if TYPE_CHECKING:
    from tasker.cli.remote.fleet import Fleet
    from tasker.simulation.replaying import Replay
    from tasker.template.plan import Plan
    from tasker.views.task_lists import TransitionDetail
    from tasker.views.tasks import TaskReport

    Ran = tuple[Plan, TaskReport, list[TransitionDetail]]


@click.command()
@click.argument("task_uuid", metavar="TASK_UUID")
@click.option(
    "--handlers",
    "folder",
    metavar="FOLDER",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path(),
    help="Folder with the handlers.py to call.  [default: the current folder]",
)
@click.option("--step", "steps", metavar="NAME", multiple=True, help="Replay only this step; repeatable.")
@click.option(
    "--fakes",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Python file whose public names are the resources that handlers get.",
)
@click.option("--ignore", metavar="PLACE", multiple=True, help="Ignore differences there, as in charge.id; repeatable.")
@click.option("--allow-effects", is_flag=True, help="Also call handlers that do not say that they may run again.")
@FORMAT
@fleet_options
def replay(
    task_uuid: str,
    folder: Path,
    steps: tuple[str, ...],
    fakes: Path | None,
    ignore: tuple[str, ...],
    allow_effects: bool,
    form: str,
    place: FleetTarget,
) -> None:
    """Call today's handlers with what they read in a task that ran, and compare each attempt's outcome.

    Nothing of the task changes. Only handlers whose effect is pure or idempotent are called, and those that get fakes
    as their resources; --allow-effects calls all.

    \b
    Examples:
      tasker task replay 0199c1f4-8a52 --handlers orders
      tasker task replay 0199c1f4-8a52 --step charge --fakes fakes.py --ignore charge.id

    \b
    Exit codes:
      0  every attempt that was replayed has the same outcome
      1  an outcome differs, or no attempt could be replayed; or there is no such task or no database
      2  a mistake in the command
    """

    async def read(app: Fleet) -> Ran:
        task = await find_task(app.tasks, task_uuid)
        history = await app.tasks.history(task)
        return await app.pinned_plan(task), await app.tasks.report(task), list(history)

    done = _replayed(run_on_fleet(place, read), folder, steps, fakes, ignore, allow_effects)
    print_as(form, _object(done), lambda _: _text(done))
    raise SystemExit(1 if done.differing or not done.attempts else 0)


def _replayed(
    ran: Ran, folder: Path, steps: tuple[str, ...], fakes: Path | None, ignore: tuple[str, ...], allow_effects: bool
) -> Replay:
    from tasker.services.workflows.handlers import load_handlers
    from tasker.simulation.replaying import replay

    plan, report, history = ran
    registry = load_handlers(())
    registry.add_beside(folder.resolve(), [plan.id])
    options: dict[str, Any] = {"steps": steps, "allow_effects": allow_effects, "ignore": ignore}
    return replay(plan, report, history, registry, fakes=None if fakes is None else _public(fakes), **options)


def _public(file: Path) -> dict[str, Any]:
    import runpy

    from tasker.errors import UsageError

    try:
        names = runpy.run_path(str(file))
    except Exception as error:
        raise UsageError(f"--fakes {file}: {type(error).__name__}: {error}") from error
    return {name: value for name, value in names.items() if not name.startswith("_")}


def _object(done: Replay) -> dict[str, Any]:
    return {
        "attempts": [
            {"step": each.step, "attempt": each.attempt, "differences": list(each.differences)}
            for each in done.attempts
        ],
        "skipped": [{"step": step, "reason": why} for step, why in done.skipped.items()],
    }


def _text(done: Replay) -> str:
    lines = []
    for each in done.differing:
        lines.append(f"{each.step}, attempt {each.attempt}:")
        lines += [f"  {line}" for line in each.differences]
    lines += [f"{step} was not replayed: {why}" for step, why in done.skipped.items()]
    same = len(done.attempts) - len(done.differing)
    lines.append(f"{counted(len(done.attempts), 'attempt')} replayed: {same} the same, {len(done.differing)} differ")
    return "\n".join(lines)
