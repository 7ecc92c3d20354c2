"""`tasker simulate`: runs of a template without a database."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tasker.cli.connection import FORMAT, print_as
from tasker.cli.render.values import table
from tasker.cli.run.input import read_input
from tasker.cli.suggestions import WorkflowPath
from tasker.errors import UsageError
from tasker.services.wording import counted

if TYPE_CHECKING:
    from tasker.simulation.explore import Exploration
    from tasker.simulation.outcome import SimulatedRun

FAILED = 1
MOST_SHOWN = 40


@click.command()
@click.argument("path", type=WorkflowPath())
@click.option("--input", "given", metavar="JSON|@FILE|-", help="Input of the task.  [default: the folder's input.json]")
@click.option("--set", "settings", metavar="KEY=VALUE", multiple=True, help="Set one input value; repeatable.")
@click.option("--template", metavar="NAME", help="Template to simulate, if PATH has several.")
@click.option("--env", "environment", metavar="NAME", help="Apply the template's overrides of this environment.")
@click.option("--mock", "mocks", metavar="STEP=MOCK", multiple=True, help="Mock of a step; repeatable. See above.")
@click.option(
    "--mocks",
    "mocks_file",
    metavar="FILE",
    type=click.Path(exists=True, path_type=Path),
    help="YAML file with mocks by step.",
)
@click.option(
    "--mock-all", is_flag=True, help="Mock every other step: with a value that fits its result_schema, else {}."
)
@click.option("--handlers", "real", type=click.Choice(["real"]), help="Run the handlers of the steps without a mock.")
@click.option(
    "--slots", type=click.IntRange(1), metavar="N", help="Number of steps that run at the same time.  [default: all]"
)
@click.option("--seed", type=int, metavar="N", help="Seed of the jitter of retries.")
@click.option("--explore", "exploring", is_flag=True, help="Run every path through the template, with failures.")
@click.option(
    "--most-runs",
    type=click.IntRange(1),
    default=10_000,
    show_default=True,
    metavar="N",
    help="Maximum number of runs of --explore.",
)
@click.option(
    "--min-coverage",
    type=click.FloatRange(0, 100),
    default=0,
    metavar="PERCENT",
    help="Fail --explore below this coverage of the graph.",
)
@FORMAT
def simulate(path: Path, exploring: bool, most_runs: int, min_coverage: float, form: str, **options: Any) -> None:
    """Run a template on a virtual clock: no database and no waiting; handlers run only with --handlers real.

    Conditions, inputs, retries, delays, decisions and batches are those of a real run. A step that would call a handler
    needs a mock: `charge={"id": 7}` (a result), `charge=fail:timeout:2` (fails twice, then succeeds),
    `charge=fail:declined` (always fails), `choose=route:express,gift` (a decision), `cut=batches:3`,
    `ask=approved:ann`, `ask=rejected:ann`, `ask=no_decision`.

    \b
    Examples:
      tasker simulate orders --mock-all
      tasker simulate orders --set amount=1200 --mock charge=fail:network_error:2 --mock-all
      tasker simulate orders --handlers real --mock 'charge={"id": 7}'
      tasker simulate orders --explore --min-coverage 100

    \b
    Exit codes:
      0  the task completes; with --explore: no problems, and sufficient coverage
      1  the task fails; with --explore: problems, or too little coverage
      2  invalid command, template, mocks or input
    """
    if exploring:
        done = _explore(path, most_runs, options)
        print_as(form, _exploration(done), lambda _: _exploration_text(done))
        failed = bool(done.findings) or done.coverage.percent < min_coverage
    else:
        run = _run(path, options)
        print_as(form, run.to_dict(), lambda _: _run_text(run))
        failed = run.status != "complete"
    if failed:
        raise click.exceptions.Exit(FAILED)


def _run(path: Path, options: dict[str, Any]) -> SimulatedRun:
    from tasker.simulation.mock_texts import read_setting
    from tasker.simulation.scenarios import read_mocks
    from tasker.simulation.simulate import real_handlers, simulate, workflow_and_started

    workflow, started = workflow_and_started(path, options["template"], options["environment"])
    folder = path if path.is_dir() else path.parent
    values = read_input(options["given"], options["settings"], folder=folder, read_stdin=sys.stdin.read)
    mocks = {} if options["mocks_file"] is None else read_mocks(options["mocks_file"])
    mocks |= dict(map(read_setting, options["mocks"]))
    return simulate(
        workflow.plan,
        values.values,
        mocks,
        handlers=real_handlers(workflow, started=started) if options["real"] else None,
        templates=[each.plan for each in started],
        mock_all=options["mock_all"],
        slots=options["slots"],
        seed=options["seed"],
    )


def _explore(path: Path, most_runs: int, options: dict[str, Any]) -> Exploration:
    from tasker.simulation.explore import explore
    from tasker.simulation.simulate import workflow_of

    unused = [name for name in ("given", "settings", "mocks", "mocks_file", "mock_all", "real") if options[name]]
    if unused:
        raise UsageError(
            "--explore takes no input and no mocks: it runs every step with each outcome that the step can have"
        )
    workflow = workflow_of(path, options["template"], options["environment"])
    return explore(workflow.plan, workflow.lines, most_runs)


def _run_text(run: SimulatedRun) -> str:
    from tasker.simulation.outcome import shown_time

    rows = []
    for step in sorted(run.steps.values(), key=lambda step: (step.started_ms is None, step.first_attempt)):
        at = "" if step.started_ms is None else shown_time(step.started_ms)
        attempts = str(step.attempts) if step.attempts else ""
        rows.append((at, step.name, str(step.state), attempts, _note(run, step.name)))
    absent = [name for name, step in run.plan.by_name.items() if step.made_for is None and not run.has(name)]
    rows += [("", name, "not created", "", run.why(name)) for name in absent]
    times = ((step.name, (step.ended_ms or 0) - (step.ready_ms or 0)) for step in run.critical_path())
    critical = " > ".join(f"{name} {shown_time(time)}" for name, time in times)
    lines = [table(("at", "step", "state", "attempts", "why"), rows), ""]
    lines += [f"warning: {warning}" for warning in run.warnings]
    ended = f"{run.status} ({run.outcome})" if run.outcome else run.status
    lines.append(f"{ended} after {shown_time(run.duration_ms)}; critical path: {critical or 'none'}")
    return "\n".join(lines)


def _note(run: SimulatedRun, name: str) -> str:
    step = run.steps[name]
    if step.failures:
        last = step.failures[-1]
        return f"{len(step.failures)} failed, the last with {last.failure.error_type}: {last.failure.message}"
    return run.why(name)


def _exploration(done: Exploration) -> dict[str, Any]:
    coverage = done.coverage
    return {
        "routes": done.routes,
        "runs": done.runs,
        "complete": done.is_whole,
        "coverage_percent": round(coverage.percent, 1),
        "missing": [{"item": str(item), "place": coverage.place(item)} for item in coverage.missing],
        "undone": {name: list(steps) for name, steps in done.undone.items()},
        "findings": [{"step": each.step, "message": each.message, "place": each.place} for each in done.findings],
    }


def _exploration_text(done: Exploration) -> str:
    coverage = done.coverage
    plan = coverage.plan
    lines = [
        f"{plan.namespace}/{plan.name}: {counted(done.routes, 'path')} through {counted(len(plan.steps), 'step')}, "
        f"{counted(done.runs, 'run')}"
    ]
    if not done.is_whole:
        lines.append("stopped before all paths were run; see --most-runs")
    lines += [
        f"if {name} fails, undone: {', '.join(steps) or 'nothing'}"
        for name, steps in [*done.undone.items()][:MOST_SHOWN]
    ]
    lines += [f"{each.place or plan.name}: {each.step}: {each.message}" for each in done.findings[:MOST_SHOWN]]
    shown = f"{len(coverage.items) - len(coverage.missing)} of {len(coverage.items)}"
    lines.append(f"coverage {coverage.percent:.0f}% ({shown})")
    lines += [f"  missing: {item} ({coverage.place(item)})" for item in coverage.missing[:MOST_SHOWN]]
    return "\n".join(lines)
