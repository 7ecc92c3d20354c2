"""Graph of a task or a template as boxes and lines: existing steps, steps not taken, and steps not decided yet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from tasker.dataclasses import dataclass
from tasker.engine.states.step import SATISFYING, StepState
from tasker.server.web.presenters.graph_layout import GraphLine, GraphPosition, laid_out
from tasker.server.web.presenters.task import group, label, shape
from tasker.services.wording import URGENCY, counted, folded, span
from tasker.template.plan import Plan
from tasker.template.step_types import Creates, StepType
from tasker.views.tasks import StepReport, TaskReport

WIDTH, HEIGHT = 176, 46
NOT_TAKEN, TO_COME = "not_taken", "to_come"
ENDED = frozenset(state.value for state in SATISFYING) | {StepState.ERROR.value, StepState.CANCELLED.value}
LONGEST = 18
NOTHING_STARTED: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Box:
    """Step, or all instances of a batch worker with `done` of `count`.

    `state` is None for a step that is not part of a task. `missing` is the reason why the task does not have this step
    of the template; `step` is the name that opens the step panel. `started` is the number of tasks that it has started.
    """

    key: str
    title: str
    kind: StepType
    state: str | None
    parents: Sequence[str]
    note: str = ""
    missing: str = ""
    step: str | None = None
    count: int = 1
    done: int = 0
    started: int = 0

    @property
    def look(self) -> str:
        """Style class of the box."""
        return self.missing or ("plain" if self.state is None else group(self.state))

    @property
    def short(self) -> str:
        """Title, shortened in the middle if it is too long for the box."""
        text = self.title
        return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]}…{text[-(LONGEST // 2) :]}"

    @property
    def words(self) -> str:
        """Text below the title."""
        if self.missing:
            return "not taken" if self.missing == NOT_TAKEN else "not decided yet"
        if self.state is None:
            return self.note or self.kind.value.replace("_", " ")
        counts = f" {self.done}/{self.count}" if self.count > 1 else ""
        notes = [self.note, counted(self.started, "task") if self.started else ""]
        return " · ".join([f"{shape(self.state)} {label(self.state)}{counts}", *filter(None, notes)])


@dataclass(frozen=True, slots=True)
class Drawing:
    """Boxes with their positions and the lines between them, in pixels from the upper left corner."""

    boxes: Sequence[tuple[Box, GraphPosition]]
    lines: Sequence[tuple[GraphLine, bool]]
    """Lines; True marks a line between two existing steps."""
    width: int
    height: int


def of_task(report: TaskReport, plan: Plan, started: Mapping[str, int] = NOTHING_STARTED) -> Drawing:
    """Return the graph of a task: its steps, and the steps of its template that it does not have.

    `started` is the number of tasks that each step has started.
    """
    return _drawn([*_existing(report.steps.values(), started), *_missing(report, plan)])


def of_template(plan: Plan) -> Drawing:
    return _drawn(
        [
            Box(step.name, step.name, step.type, None, step.depends_on, note=_kind(step.type), step=step.name)
            for step in plan.steps
        ]
    )


def _kind(kind: StepType) -> str:
    return kind.value.replace("_", " ")


def _existing(steps: Iterable[StepReport], started: Mapping[str, int]) -> list[Box]:
    rows = list(folded(list(steps)))
    keys = {step.name: row[0].name for row in rows for step in row}
    return [_box(row, keys, sum(started.get(step.name, 0) for step in row)) for row in rows]


def _box(row: Sequence[StepReport], keys: Mapping[str, str], started: int) -> Box:
    first = row[0]
    parents = list(dict.fromkeys(keys[name] for step in row for name in step.depends_on if name in keys))
    kind = StepType(first.type)
    if len(row) > 1:
        state = min((step.state for step in row), key=URGENCY.index)
        done = sum(step.state in SATISFYING for step in row)
        title = span([step.name for step in row])
        return Box(first.name, title, kind, state, parents, step=first.name, count=len(row), done=done, started=started)
    tries = f"{first.attempts}/{first.max_attempts}" if first.attempts > 1 or first.state == "error" else ""
    return Box(first.name, first.name, kind, first.state, parents, note=tries, step=first.name, started=started)


def _missing(report: TaskReport, plan: Plan) -> list[Box]:
    """Return the steps of the template that the task has neither by name nor as instances."""
    instances = {name.rpartition("_")[0] for name, step in report.steps.items() if StepType(step.type).is_pattern}
    names = {step.name for step in plan.steps} - set(report.steps) - instances
    firsts = _first_instances(report)
    boxes = []
    for step in plan.steps:
        if step.name not in names:
            continue
        parents = [firsts.get(name, name) for name in step.depends_on]
        why = NOT_TAKEN if report.finished or _decided_against(step.depends_on, report, plan) else TO_COME
        boxes.append(Box(step.name, step.name, step.type, None, parents, missing=why))
    return boxes


def _first_instances(report: TaskReport) -> dict[str, str]:
    """Return the first instance of each batch worker by the worker's name in the template."""
    instances: dict[str, str] = {}
    for name, step in report.steps.items():
        if StepType(step.type).is_pattern:
            instances.setdefault(name.rpartition("_")[0], name)
    return instances


def _decided_against(parents: Iterable[str], report: TaskReport, plan: Plan) -> bool:
    deciding = [name for name in parents if plan.by_name[name].type.creates is not Creates.NOTHING]
    return any(name in report.steps and report.steps[name].state in ENDED for name in deciding)


def _drawn(boxes: Sequence[Box]) -> Drawing:
    known = {box.key: box for box in boxes}
    edges = [(parent, box.key) for box in boxes for parent in box.parents if parent in known]
    layout = laid_out([box.key for box in boxes], edges, WIDTH, HEIGHT)
    lines = [(line, not (known[line.start].missing or known[line.end].missing)) for line in layout.lines]
    return Drawing([(box, layout.places[box.key]) for box in boxes], lines, layout.width, layout.height)
