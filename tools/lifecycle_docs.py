"""Writes the generated parts of docs/states.md, docs/decisions-and-batches.md and docs/templates.md.

    python -m tools.lifecycle_docs

A generated part stands between `<!-- begin NAME -->` and `<!-- end NAME -->`; the text around it is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from tasker.engine.states import step as step_machine
from tasker.engine.states import task as task_machine
from tasker.engine.states.diagrams import markdown, mermaid, transition_table, walk
from tasker.engine.states.step import OPEN_TO_OPERATORS, STEP, StepState
from tasker.engine.states.step_changes import CHANGES, PLACES, StepChangeKind
from tasker.engine.states.task import TASK, TaskState, task_path
from tasker.template.plan import Plan
from tasker.template.step_types import StepType
from tests.unit.engine.convergence_cases import TABLES, Case

DOCS = Path(__file__).parents[1] / "docs"
FILES = ("states.md", "decisions-and-batches.md", "templates.md")


def main() -> None:
    """Renews the documents in place."""
    for name in FILES:
        file = DOCS / name
        file.write_text(current(file.read_text()))


def current(text: str) -> str:
    """The text with every generated part renewed."""
    return re.sub(r"(<!-- begin ([\w-]+) -->\n).*?(<!-- end \2 -->)", _renewed, text, flags=re.DOTALL)


def _renewed(match: re.Match[str]) -> str:
    return f"{match[1]}\n{PARTS[match[2]]()}\n\n{match[3]}"


def _diagram(text: str) -> str:
    return f"```mermaid\n{text}\n```"


WRITES = (
    ("submit", TaskState.PENDING, TaskState.STEPS_IN_PROCESS),
    ("submit held", TaskState.PENDING, TaskState.WAITING_FOR_DEPENDENCIES),
    ("submit empty", TaskState.PENDING, TaskState.COMPLETE),
    ("more steps", TaskState.STEPS_IN_PROCESS, TaskState.STEPS_IN_PROCESS),
    ("wait for siblings", TaskState.STEPS_IN_PROCESS, TaskState.WAITING_FOR_DEPENDENCIES),
    ("wait for retry", TaskState.STEPS_IN_PROCESS, TaskState.WAITING_FOR_RETRY),
    ("retry", TaskState.WAITING_FOR_RETRY, TaskState.STEPS_IN_PROCESS),
    ("complete", TaskState.STEPS_IN_PROCESS, TaskState.COMPLETE),
    ("block", TaskState.STEPS_IN_PROCESS, TaskState.BLOCKED_BY_FAILURES),
    ("give up", TaskState.STEPS_IN_PROCESS, TaskState.ERROR),
    ("reopen", TaskState.ERROR, TaskState.STEPS_IN_PROCESS),
)
"""What a write does to a task most often, from where to where."""


def _task_paths() -> str:
    rows = [(name, walk((state, *(task_path(state, target) or ())))) for name, state, target in WRITES]
    return markdown(("write", "path"), [*rows, ("cancel", f"any open state → `{TaskState.CANCELLED}`")])


def _changes() -> str:
    return _moves("kind", CHANGES)


def _places() -> str:
    return _moves("place", PLACES)


def _moves(what: str, moves: Mapping[str, StepChangeKind]) -> str:
    rows = [
        (f"`{name}`", "<br>".join(_ways(move)), move.token.value, move.attempts.value) for name, move in moves.items()
    ]
    return markdown((what, "path", "token", "attempts"), rows)


def _ways(move: StepChangeKind) -> list[str]:
    if len(move.paths) == len(OPEN_TO_OPERATORS):
        return [f"any open state, `error` → `{move.paths[0][-1]}`"]
    return [walk(states) for states in move.paths]


def _convergence() -> str:
    """The cases of the tests, one table for each group."""
    return "\n\n".join(f"### {title}\n\n{_templates(cases)}\n\n{_rows(cases)}" for title, cases in TABLES.items())


def _templates(cases: tuple[Case, ...]) -> str:
    return "\n".join(f"- Template {letter}: {_steps(plan)}" for plan, letter in _letters(cases))


def _letters(cases: tuple[Case, ...]) -> list[tuple[Plan, str]]:
    """The plans of a table, in the order of their first use, each with a letter."""
    plans: list[Plan] = []
    for case in cases:
        plans += [case.plan] if case.plan not in plans else []
    return list(zip(plans, "ABCDEFGH", strict=False))


def _steps(plan: Plan) -> str:
    return "; ".join(
        f"`{step.name}` ({step.type})" + (f" after {', '.join(step.depends_on)}" if step.depends_on else "")
        for step in plan.steps
    )


def _rows(cases: tuple[Case, ...]) -> str:
    header = ("template", "there already", "what completes", "created, and what it waits for", "because")
    rows = [
        (letter, _there(case), f"`{case.parent}`: {_outcome(case)}", _created(case), case.why)
        for case in cases
        for plan, letter in _letters(cases)
        if plan == case.plan
    ]
    return markdown(header, rows)


def _created(case: Case) -> str:
    return "<br>".join(f"`{name}` after {', '.join(parents)}" for name, parents in case.created.items())


def _there(case: Case) -> str:
    return ", ".join([*(f"{name} (done)" for name in case.done), *(f"{name} (open)" for name in case.open)]) or "-"


def _outcome(case: Case) -> str:
    (outcome,) = case.outcome.values()
    chosen = ", ".join(outcome.get("step_names", ())) or str(outcome.get("worker_count", ""))
    return f"{outcome['type']} {chosen}".strip()


def _step_types() -> str:
    rows = [
        (f"`{type_}`", ", ".join(f"`{alias}`" for alias in type_.traits.aliases), type_.traits.does)
        for type_ in StepType
    ]
    return markdown(("type", "also", "what it is"), rows)


PARTS: Mapping[str, Callable[[], str]] = {
    "task-diagram": lambda: _diagram(mermaid(TASK, TaskState.PENDING, task_machine.TERMINAL)),
    "task-transitions": lambda: transition_table(TASK),
    "task-paths": _task_paths,
    "step-diagram": lambda: _diagram(mermaid(STEP, StepState.PENDING, step_machine.TERMINAL)),
    "step-transitions": lambda: transition_table(STEP),
    "step-changes": _changes,
    "step-places": _places,
    "convergence": _convergence,
    "step-types": _step_types,
}

if __name__ == "__main__":
    main()
