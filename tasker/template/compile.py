"""Compiler from text to plans: reads, normalizes, checks the graph, compiles. Pure: text in, values out."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from typing import Any, NamedTuple

from tasker.dataclasses import dataclass
from tasker.template.build import build_plan
from tasker.template.compensations import with_compensations
from tasker.template.diagnostics import Diagnostic, Position, Report, Severity
from tasker.template.documents import (
    DocumentReading,
    StepDraft,
    check_overrides,
    make_drafts,
    overrides,
    settings,
    with_defaults_of_template,
)
from tasker.template.failure_paths import with_failure_paths
from tasker.template.generated_steps import with_generated_steps
from tasker.template.graph import build_graph
from tasker.template.model import TEMPLATE
from tasker.template.plan import Plan
from tasker.template.plugin_rules import TemplateRules, check_plugged, known_steps
from tasker.template.retry import retry_policy
from tasker.template.rules import check_rules
from tasker.template.rules.conditions import overridden_inputs_exist
from tasker.template.schedules import check_contexts, check_schedules
from tasker.template.yaml.nodes import Node
from tasker.template.yaml.source import Document, read_documents


@dataclass(frozen=True)
class CompiledStep:
    """Source of a plan's step: the file, and the positions of its callable and of publishers and limits it names."""

    file: str
    callable: Position
    publishers: tuple[tuple[str, Position], ...] = ()
    limits: tuple[tuple[str, Position], ...] = ()


@dataclass(frozen=True)
class Places:
    """Positions in the source of a plan."""

    file: str
    reading: DocumentReading
    indexes: Mapping[str, int]
    """Index of each step in the document, by name."""

    def of(self, *path: str) -> Position:
        """Return the position of a key, or of the nearest value around it; a step is in the path by its name."""
        if path[:1] == ("steps",) and len(path) > 1:
            index = self.indexes.get(path[1])
            return self.reading.key("steps") if index is None else self.reading.key("steps", index, *path[2:])
        return self.reading.key(*path)


@dataclass(frozen=True)
class CompileResult:
    """Plans of the documents without errors, and all diagnostics.

    `sources` maps file names to texts; `origins` contains for each plan, in the same order, its steps by name, and
    `places` its positions; `environments` are those for which some document has overrides.
    """

    plans: tuple[Plan, ...]
    diagnostics: tuple[Diagnostic, ...]
    sources: Mapping[str, str] = field(default_factory=dict)
    origins: tuple[Mapping[str, CompiledStep], ...] = ()
    environments: frozenset[str] = frozenset()
    places: tuple[Places, ...] = ()

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """Diagnostics that make a template unusable."""
        return tuple(d for d in self.diagnostics if d.severity is Severity.ERROR)

    @property
    def ok(self) -> bool:
        """True if there are no errors; warnings are allowed."""
        return not self.errors


Origins = Mapping[str, CompiledStep]


@contextmanager
def _without_collections() -> Iterator[None]:
    """Disable the garbage collector: compiling creates many objects and no garbage; collections took half the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@_without_collections()
def compile_text(
    text: str,
    *,
    file: str = "<string>",
    environment: str | None = None,
    rules: TemplateRules = (),
    strict: bool = False,
) -> CompileResult:
    """Compile every template in a text.

    `file` is the name in diagnostics; `environment` selects the overrides to apply; `rules` are those of plugins,
    applied after the built-in ones. `strict` adds warnings about values that no schema describes or that nothing reads.
    Never raises: every problem of the text is a diagnostic, and a document with an
    error yields no plan.
    """
    report = Report(file, text)
    compiled: dict[tuple[str, str, str], _Compiled] = {}
    for document in read_documents(text, report):
        result = _compile_document(document, report, environment, rules, strict)
        if result is not None:
            _report_second(result.plan, document.node, compiled, report)
            compiled.setdefault(_identity(result.plan), result)
    return CompileResult(
        tuple(each.plan for each in compiled.values()),
        report.diagnostics(),
        {file: text},
        tuple(each.origins for each in compiled.values()),
        frozenset(name for each in compiled.values() for name in each.environments),
        tuple(each.places for each in compiled.values()),
    )


class _Compiled(NamedTuple):
    plan: Plan
    origins: Origins
    environments: frozenset[str]
    places: Places


def _identity(plan: Plan) -> tuple[str, str, str]:
    return (plan.namespace, plan.name, plan.version)


def _report_second(plan: Plan, node: Node, compiled: Mapping[tuple[str, str, str], Any], report: Report) -> None:
    if _identity(plan) in compiled:
        message = f"the file holds `{plan.namespace}/{plan.name}:{plan.version}` twice"
        report.add("T031", message, node.location, "change the name or the version of one of them")


def _compile_document(
    source: Document, report: Report, environment: str | None, rules: TemplateRules, strict: bool
) -> _Compiled | None:
    reading = DocumentReading(report, source.node.location, known_steps(rules))
    document = with_defaults_of_template(TEMPLATE.read(source.node, (), reading), reading)
    written, complete = make_drafts(document.get("steps", ()), reading)
    drafts = with_compensations(with_generated_steps(with_failure_paths(written, document)))
    graph = build_graph(drafts, complete and "steps" in document)
    check_rules(graph, document, {draft.name: draft for draft in written}, strict)
    overridden_inputs_exist(graph.steps, document, reading)
    check_schedules(document, reading)
    check_overrides(written, document, reading)
    _check_every_environment(drafts, document)
    if report.errors > source.errors_before:
        return None
    plan = build_plan(document, graph, environment)
    check_contexts(plan, reading)
    check_plugged(rules, plan, drafts, reading)
    if report.errors > source.errors_before:
        return None
    origins = {draft.name: _origin(draft, report.file) for draft in drafts}
    places = Places(report.file, reading, {draft.name: draft.index for draft in drafts})
    return _Compiled(plan, origins, frozenset(document.get("environments", ())), places)


def _origin(draft: StepDraft, file: str) -> CompiledStep:
    events = enumerate(draft.values.get("publishes_events", ()))
    named = [(number, event["publisher"]) for number, event in events if "publisher" in event]
    locations = [draft.reading.value(*draft.path, "publishes_events", number, "publisher") for number, _ in named]
    publishers = tuple((name, location) for (_, name), location in zip(named, locations, strict=True))
    limits = tuple(
        (limit["name"], draft.location("limits", number, "name"))
        for number, limit in enumerate(draft.values.get("limits", ()))
    )
    return CompiledStep(file, draft.location("handler", "callable"), publishers, limits)


def _check_every_environment(drafts: list[StepDraft], document: Mapping[str, Any]) -> None:
    """Check the retry settings of every environment, so that a mistake is reported whichever one is selected."""
    for environment in [None, *document.get("environments", {})]:
        overridden = overrides(document, environment)
        for draft in drafts:
            retry_policy(draft, settings(draft, overridden))
