"""Rules of plugins, applied to a template without errors of the built-in rules."""

from __future__ import annotations

from collections.abc import Iterable

from tasker.contracts.plan import Plan
from tasker.contracts.template_rules import RuleFailed, RuleFinding, TemplateRule, TemplateRules
from tasker.template.codes import Severity
from tasker.template.diagnostics import Position
from tasker.template.drafts import StepDraft
from tasker.template.reading import DocumentReading


def check_plugged(rules: TemplateRules, plan: Plan, drafts: Iterable[StepDraft], reading: DocumentReading) -> None:
    """Report the findings of plugins. A failing plugin is a warning, since it does not concern the template."""
    steps = {draft.name: draft.path for draft in drafts}
    for rule in rules:
        try:
            findings = rule.judge(plan)
        except RuleFailed as error:
            message = f"the rules of the plugin `{rule.plugin}` could not be asked: {error}"
            reading.report.add("T086", message, reading.value("name"), "mend or disable it: tasker plugin list")
        else:
            for finding in findings:
                _report(rule, finding, steps, reading)


def _report(
    rule: TemplateRule, finding: RuleFinding, steps: dict[str, tuple[str | int, ...]], reading: DocumentReading
) -> None:
    place = _place(finding, steps, reading)
    code = f"{rule.plugin}.{finding.code}"
    reading.report.add_found(code, Severity(finding.severity), finding.message, place, finding.hint)


def _place(finding: RuleFinding, steps: dict[str, tuple[str | int, ...]], reading: DocumentReading) -> Position:
    """Return the position of the finding, or of the nearest value around it."""
    return reading.value(*steps.get(finding.step or "", ()), *(finding.keys or ("name",)))
