"""From text to plans: read, check, normalize, check the graph, compile. Pure: text in, values out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tasker.contracts.plan import Plan, RetryPolicy
from tasker.template.build import build_plan
from tasker.template.codes import Severity
from tasker.template.diagnostics import Diagnostic, Place, Report
from tasker.template.drafts import StepDraft, make_drafts
from tasker.template.graph import build_graph
from tasker.template.model import TEMPLATE
from tasker.template.nodes import Node
from tasker.template.overrides import check_overrides, settings
from tasker.template.reading import Reading
from tasker.template.retry import DEFAULT_POLICY, retry_policy
from tasker.template.rules import check_rules
from tasker.template.source import Document, read_documents


@dataclass(frozen=True)
class CompiledStep:
    """Where a step of a plan came from: the file, and the place of its callable."""

    file: str
    callable: Place


@dataclass(frozen=True)
class CompileResult:
    """The plans of the documents without errors, and everything there is to say.

    `sources` holds the texts by file name; `origins` holds for each plan, in the same order, its steps by name.
    """

    plans: tuple[Plan, ...]
    diagnostics: tuple[Diagnostic, ...]
    sources: Mapping[str, str] = field(default_factory=dict)
    origins: tuple[Mapping[str, CompiledStep], ...] = ()

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """The diagnostics that make a template unusable."""
        return tuple(d for d in self.diagnostics if d.severity is Severity.ERROR)

    @property
    def ok(self) -> bool:
        """True when nothing but warnings was found."""
        return not self.errors


Origins = Mapping[str, CompiledStep]


def compile_text(
    text: str, *, file: str = "<string>", environment: str | None = None, retry: RetryPolicy = DEFAULT_POLICY
) -> CompileResult:
    """Compile every template of a text.

    `file` is the name that diagnostics carry; `environment` chooses the overrides to apply; `retry` is the policy of
    steps that say nothing about retries. Never raises: whatever is wrong with the text is a diagnostic, and a document
    with an error yields no plan.
    """
    report = Report(file)
    compiled: dict[tuple[str, str, str], tuple[Plan, Origins]] = {}
    for document in read_documents(text, report):
        found = _compile_document(document, report, environment, retry)
        if found is not None:
            _report_second(found[0], document.node, compiled, report)
            compiled.setdefault(_identity(found[0]), found)
    plans = tuple(plan for plan, _ in compiled.values())
    return CompileResult(plans, report.diagnostics(), {file: text}, tuple(o for _, o in compiled.values()))


def _identity(plan: Plan) -> tuple[str, str, str]:
    return (plan.namespace, plan.name, plan.version)


def _report_second(plan: Plan, node: Node, compiled: Mapping[tuple[str, str, str], Any], report: Report) -> None:
    if _identity(plan) in compiled:
        message = f"the file holds `{plan.namespace}/{plan.name}:{plan.version}` twice"
        report.add("T031", message, node.place, "change the name or the version of one of them")


def _compile_document(
    source: Document, report: Report, environment: str | None, retry: RetryPolicy
) -> tuple[Plan, Origins] | None:
    reading = Reading(report, source.node.place)
    document = TEMPLATE.read(source.node, (), reading)
    drafts, complete = make_drafts(document.get("steps", ()), reading)
    graph = build_graph(drafts, complete and "steps" in document)
    check_rules(graph, document)
    check_overrides(drafts, document, reading)
    _check_every_environment(drafts, document)
    if report.errors > source.errors_before:
        return None
    origins = {draft.name: CompiledStep(report.file, draft.place("handler", "callable")) for draft in drafts}
    return build_plan(document, graph, environment, retry), origins


def _check_every_environment(drafts: list[StepDraft], document: Mapping[str, Any]) -> None:
    """A mistake in an override is reported whichever environment is chosen."""
    for environment in [None, *document.get("environments", {})]:
        for draft in drafts:
            retry_policy(draft, settings(draft, document, environment))
