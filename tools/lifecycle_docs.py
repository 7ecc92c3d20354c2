"""Writes the generated parts of docs/states.md and docs/decisions-and-batches.md.

    python -m tools.lifecycle_docs

A generated part stands between `<!-- begin NAME -->` and `<!-- end NAME -->`; the text around it is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from tasker.contracts.plan import Plan
from tasker.lifecycle.machines import paths
from tasker.lifecycle.machines import step as step_machine
from tasker.lifecycle.machines import task as task_machine
from tasker.lifecycle.machines.diagrams import markdown, mermaid, transition_table, walk
from tasker.lifecycle.machines.step import STEP, StepState
from tasker.lifecycle.machines.task import TASK, TaskState
from tests.unit.lifecycle.convergence_cases import TABLES, Case

DOCS = Path(__file__).parents[1] / "docs"
FILES = ("states.md", "decisions-and-batches.md")


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


def _paths(prefix: str) -> str:
    """The paths by their constant's words; a path from many states is shown by its end."""
    rows = []
    for name, value in vars(paths).items():
        if name.startswith(prefix):
            words = name.removeprefix(prefix).replace("_", " ").lower()
            ends = {path[-1] for path in value.values()} if isinstance(value, Mapping) else set()
            rows.append((words, f"any open state → `{ends.pop()}`" if ends else walk(value)))
    return markdown(("write", "path"), rows)


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


PARTS: Mapping[str, Callable[[], str]] = {
    "task-diagram": lambda: _diagram(mermaid(TASK, TaskState.PENDING, task_machine.TERMINAL)),
    "task-transitions": lambda: transition_table(TASK),
    "task-paths": lambda: _paths("TASK_"),
    "step-diagram": lambda: _diagram(mermaid(STEP, StepState.PENDING, step_machine.TERMINAL)),
    "step-transitions": lambda: transition_table(STEP),
    "step-paths": lambda: _paths("STEP_"),
    "convergence": _convergence,
}

if __name__ == "__main__":
    main()
