"""Rows of queues and templates for their pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from shlex import quote
from typing import Any

from tasker.dataclasses import dataclass
from tasker.server.web.presenters.text import compact
from tasker.services.fleet.analytics import StepPace, TemplatePaces
from tasker.services.fleet.brokers import BrokerReport, QueueReport
from tasker.services.fleet.overview import Overview, Queue, TemplatePace
from tasker.services.fleet.scaling import ScalingAdvice
from tasker.template.diagnostics import Diagnostic
from tasker.template.plan import Plan, StepPlan
from tasker.views.task_lists import Pause

KINDS = ("namespace", "template", "step", "task", "queue")
"""Kinds of targets that can be paused."""


@dataclass(frozen=True, slots=True)
class QueueRow:
    """Queue of a namespace; `message_queue` is that of the provider, None if the provider is not reachable."""

    queue: Queue
    advice: ScalingAdvice | None
    message_queue: QueueReport | None


def queues(overview: Overview, advice: Sequence[ScalingAdvice], broker: BrokerReport | None) -> list[QueueRow]:
    """Return a row for each namespace of the page, the fullest first."""
    by_namespace = {scaling.namespace: scaling for scaling in advice}
    messages = {queue.queue: queue for queue in broker.queues} if broker else {}
    return [
        QueueRow(queue, by_namespace.get(queue.namespace), messages.get(f"worker_{queue.namespace}_queue"))
        for queue in overview.queues
    ]


def target_fields(pause: Pause) -> dict[str, str]:
    """Return the form fields that end this pause."""
    if pause.queue:
        return {"what": "queue", "name": pause.queue}
    if pause.task:
        return {"what": "task", "name": pause.task}
    parts = [part for part in (pause.namespace, pause.template, pause.step) if part]
    return {"what": ("namespace", "template", "step")[len(parts) - 1], "name": "/".join(parts)}


def command_of(pause: Pause) -> str:
    """Return the command that ends this pause."""
    fields = target_fields(pause)
    option = "" if fields["what"] == "namespace" else f"--{fields['what']} "
    return f"tasker resume {option}{fields['name']}"


@dataclass(frozen=True, slots=True)
class Listed:
    """Template with its newest version and its number of versions; `pace` covers the newest version in the last
    hour."""

    namespace: str
    name: str
    version: str
    versions: int
    description: str
    steps: int
    updated_at: Any
    pace: TemplatePace | None
    paused: bool


def listed(rows: Iterable[Mapping[str, Any]], overview: Overview | None, pauses: Sequence[Pause]) -> list[Listed]:
    """Return a row for each template, given by its newest version."""
    paces = {(pace.namespace, pace.template): pace for pace in (overview.templates if overview else ())}
    paused = {(pause.namespace, pause.template) for pause in pauses if pause.step is None}
    return [
        Listed(
            namespace=row["namespace"],
            name=row["name"],
            version=row["version"],
            versions=row["versions"],
            description=row["description"] or "",
            steps=row["steps"],
            updated_at=row["updated_at"],
            pace=paces.get((row["namespace"], f"{row['name']}:{row['version']}")),
            paused=(row["namespace"], row["name"]) in paused,
        )
        for row in rows
    ]


def pause_of(pauses: Iterable[Pause], namespace: str, name: str) -> Pause | None:
    """Return the pause of the template as a whole, or None."""
    matching = (pause for pause in pauses if (pause.namespace, pause.template, pause.step) == (namespace, name, None))
    return next(matching, None)


@dataclass(frozen=True, slots=True)
class TemplateStepRow:
    """Step of a template with the number of workers that have its handler and its recent statistics."""

    step: StepPlan
    workers: int
    pace: StepPace | None


def step_rows(plan: Plan, paces: TemplatePaces, serving: Mapping[str, int]) -> list[TemplateStepRow]:
    """Return the steps in topological order; `serving` has the number of workers with the handler of each step."""
    return [TemplateStepRow(step, serving.get(step.name, 0), paces.steps.get(step.name)) for step in plan.steps]


@dataclass(frozen=True, slots=True)
class DiffLine:
    """Line of a text and its problems."""

    number: int
    text: str
    found: Sequence[Diagnostic]

    @property
    def parts(self) -> tuple[str, str, str]:
        """Text before, in and after the first problem of the line."""
        if not self.found:
            return self.text, "", ""
        first = self.found[0]
        begin = min(max(first.column - 1, 0), len(self.text))
        end = min(begin + max(first.length, 1), len(self.text))
        return self.text[:begin], self.text[begin:end], self.text[end:]


def lines_of(text: str, diagnostics: Iterable[Diagnostic]) -> list[DiffLine]:
    """Return the lines of a text with their problems; problems beyond the end are attached to the last line."""
    lines = text.splitlines() or [""]
    by_line: dict[int, list[Diagnostic]] = {}
    for diagnostic in diagnostics:
        by_line.setdefault(min(max(diagnostic.line, 1), len(lines)), []).append(diagnostic)
    return [DiffLine(number, line, by_line.get(number, [])) for number, line in enumerate(lines, 1)]


@dataclass(frozen=True, slots=True)
class Compared:
    """Line of one version next to that of another; None if the version has no such line. `changed` if they differ."""

    left: str | None
    right: str | None
    changed: bool


def compared(left: str, right: str) -> list[Compared]:
    """Return the lines of two texts side by side."""
    before, after = left.splitlines(), right.splitlines()
    rows: list[Compared] = []
    for kind, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        size = max(b - a, d - c)
        for offset in range(size):
            one = before[a + offset] if a + offset < b else None
            other = after[c + offset] if c + offset < d else None
            rows.append(Compared(one, other, kind != "equal"))
    return rows


def submit_command(plan: Plan, context: Mapping[str, Any]) -> str:
    """Return the command that submits such a task."""
    name = quote(f"{plan.namespace}/{plan.name}:{plan.version}")
    return f"tasker task submit {name} --input {quote(compact(dict(context)))}"


def request_body(plan: Plan, context: Mapping[str, Any]) -> str:
    """Return the JSON body of the API request that submits such a task."""
    body = {"namespace": plan.namespace, "name": plan.name, "version": plan.version, "context": dict(context)}
    return compact(body)
