"""`tasker task record`: a task that ran as a case of a scenario file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tasker.cli.connection import FORMAT, print_as
from tasker.cli.target import FleetTarget, find_task, fleet_options, run_on_fleet
from tasker.errors import UsageError

if TYPE_CHECKING:
    from tasker.cli.remote.fleet import Fleet
    from tasker.simulation.recording import Recording

ANNOUNCED_STEPS = 1_000
"""Number of steps from which the command says what it does meanwhile."""


@click.command()
@click.argument("task_uuid", metavar="TASK_UUID")
@click.option(
    "-o",
    "--output",
    "file",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Scenario file to write, such as orders/case.scenario.yaml; an existing one is not overwritten.  "
    "[default: the terminal]",
)
@click.option(
    "--template",
    metavar="PATH",
    default="workflow.yaml",
    show_default=True,
    help="The template's file, relative to the scenario file.",
)
@click.option(
    "--keep",
    metavar="PLACE",
    multiple=True,
    help="Write the sensitive value at this place as it is, such as input.card or steps.charge.receipt; repeatable.",
)
@click.option("--full", is_flag=True, help="Write long results whole, not only what the template reads of them.")
@FORMAT
@fleet_options
def record(
    task_uuid: str,
    file: Path | None,
    template: str,
    keep: tuple[str, ...],
    full: bool,
    form: str,
    place: FleetTarget,
) -> None:
    """Record a task as a case of a scenario file, which pytest runs without a database.

    The case has the task's input, and as mocks what each call of a handler returned or how it failed, with its
    duration. It is simulated before it is written, and refused if the simulated run differs from the task.

    Sensitive values (x-sensitive) are replaced by others that fit their schemas, equal ones alike. Of a task that has
    not ended, only the steps that have are expected.

    \b
    Examples:
      tasker task record 0199c1f4-8a52 -o orders/declined.scenario.yaml
      tasker task record 0199c1f4-8a52 --keep input.country -o orders/abroad.scenario.yaml

    \b
    Exit codes:
      0  the case was written
      1  there is no such task or no database
      2  a mistake in the command, or the simulated run differs
    """
    if file is not None and file.exists():
        raise UsageError(f"{file} exists", hint="choose another file, and move its case to yours")

    if file is not None:
        _check_name(file)

    async def read(app: Fleet) -> tuple[Recording, str]:
        from tasker.simulation.recording import MOST_STEPS, record

        task = await find_task(app.tasks, task_uuid)
        total = await _total(app, task)
        if total > MOST_STEPS:
            raise UsageError(f"the task has {total} steps, and a case at most {MOST_STEPS}")
        _announce(total, f"reading {total} steps")
        plan, report = await app.pinned_plan(task), await app.tasks.report(task)
        history = await app.tasks.history(task)
        _announce(total, "simulating the case")
        return record(plan, report, history, template=template, keep=keep, full=full), task

    recording, task = run_on_fleet(place, read)
    if unknown := [name for name in keep if not any(_below(name, kept) for kept in recording.kept)]:
        known = ", ".join((*recording.replaced, *recording.kept))
        hint = f"sensitive values: {known}" if known else "the task has no sensitive values: leave out --keep"
        raise UsageError(f"--keep {unknown[0]}: there is no sensitive value at this place", hint=hint)
    if file is not None:
        _write(file, recording.text)
    done = {
        "task_uuid": task,
        "file": None if file is None else str(file),
        "steps": recording.steps,
        "replaced": list(recording.replaced),
        "kept": list(recording.kept),
        "cut": list(recording.cut),
        "notes": [*recording.notes, *_other_template(file, template, recording)],
    }
    if file is None:
        done["text"] = recording.text
    print_as(form, done, _text)


def _check_name(file: Path) -> None:
    from tasker.services.workflows.files import SCENARIOS

    if not file.name.endswith(SCENARIOS):
        hint = f"pytest runs such files alone: -o {file.with_suffix('')}{SCENARIOS}"
        raise UsageError(f"-o {file}: expected a name that ends with {SCENARIOS}", hint=hint)


def _write(file: Path, text: str) -> None:
    try:
        with file.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error.strerror}", hint="choose another file") from None


async def _total(app: Fleet, task: str) -> int:
    from datetime import UTC, datetime

    return (await app.tasks.progress(task, datetime.now(UTC))).total


def _announce(steps: int, what: str) -> None:
    if steps >= ANNOUNCED_STEPS:
        click.echo(f"{what} ...", err=True)


def _below(keep: str, place: str) -> bool:
    keep, place = keep.replace("[]", ""), place.replace("[]", "")
    return place == keep or place.startswith(f"{keep}.")


def _other_template(file: Path | None, template: str, recording: Recording) -> list[str]:
    """Return a note if the template beside the scenario file is not the one of the task."""
    if file is None:
        return []
    path = file.parent / template
    if not path.exists():
        return [f"there is no {path}: the case needs the template there, or another --template"]
    from tasker.errors import TaskerError
    from tasker.simulation.simulate import workflow_of

    try:
        plan = workflow_of(path, recording.template_id.name).plan
    except TaskerError as error:
        return [f"{path} cannot be used: {error.message}"]
    if plan.id == recording.template_id:
        return []
    return [f"{path} is {plan.id}, with other content than the {recording.template_id} of the task: the case may fail"]


def _text(done: dict[str, Any]) -> str:
    lines = []
    if done["replaced"]:
        lines.append(f"sensitive values were replaced: {', '.join(done['replaced'])}")
    if done["kept"]:
        lines.append(f"sensitive values are in it as they were: {', '.join(done['kept'])}")
    if done["cut"]:
        lines.append(f"long results were cut (see --full): {', '.join(done['cut'][:10])}")
    lines += done["notes"]
    if done["file"] is None:
        for line in lines:
            click.echo(line, err=True)
        return str(done["text"]).rstrip("\n")
    return "\n".join([f"wrote {done['file']}: {done['steps']} steps", *lines, f"run it: pytest {done['file']}"])
