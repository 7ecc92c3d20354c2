"""Rules of templates that plugins add."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, Protocol

from tasker.dataclasses import dataclass
from tasker.template.builtin import BUILTIN, BuiltinStep
from tasker.template.diagnostics import Position, Severity
from tasker.template.documents import DocumentReading, StepDraft
from tasker.template.plan import Plan


@dataclass(frozen=True, slots=True)
class RuleFinding:
    """Finding of a plugin in a template. With an `error` the template is rejected; a `warning` is only reported."""

    code: str
    """One-word code of the rule, shown after the plugin's name: `shop.owner`."""
    message: str
    step: str | None = None
    """Step concerned; None: the template."""
    keys: tuple[str | int, ...] = ()
    """Location, as the keys that `tasker template show` prints: `("retry", "max_attempts")`. Empty: its name."""
    severity: Literal["error", "warning"] = "error"
    hint: str | None = None
    """Suggested fix."""


class RuleFailed(Exception):
    """Failure of a plugin to check a template; the text is the reason."""


class TemplateRule(Protocol):
    """Rules of one plugin, and the steps that it adds."""

    @property
    def plugin(self) -> str:
        """Name of the plugin."""
        ...

    @property
    def steps(self) -> Mapping[str, BuiltinStep]:
        """Built-in steps of the plugin, by the name of their handler."""
        ...

    def judge(self, plan: Plan) -> Sequence[RuleFinding]:
        """Return the findings in a template without errors. Raises `RuleFailed`."""
        ...


TemplateRules = Sequence[TemplateRule]


def known_steps(rules: TemplateRules) -> Mapping[str, BuiltinStep]:
    """Return the built-in steps, with those that plugins add."""
    added = {name: step for rule in rules for name, step in rule.steps.items()}
    return {**added, **BUILTIN} if added else BUILTIN


def check_plugged(rules: TemplateRules, plan: Plan, drafts: Iterable[StepDraft], reading: DocumentReading) -> None:
    """Report the findings of plugins. A failing plugin is a warning, since it does not concern the template."""
    steps = {draft.name: draft.path for draft in drafts}
    for rule in rules:
        try:
            findings = rule.judge(plan)
        except RuleFailed as error:
            message = f"the rules of the plugin `{rule.plugin}` could not be asked: {error}"
            reading.report.add("T086", message, reading.value("name"), "fix or disable it: tasker plugin list")
        else:
            for finding in findings:
                _report(rule, finding, steps, reading)


def _report(
    rule: TemplateRule, finding: RuleFinding, steps: dict[str, tuple[str | int, ...]], reading: DocumentReading
) -> None:
    location = _rule_location(finding, steps, reading)
    code = f"{rule.plugin}.{finding.code}"
    reading.report.add_found(code, Severity(finding.severity), finding.message, location, finding.hint)


def _rule_location(finding: RuleFinding, steps: dict[str, tuple[str | int, ...]], reading: DocumentReading) -> Position:
    """Return the position of the finding, or of the nearest value around it."""
    return reading.value(*steps.get(finding.step or "", ()), *(finding.keys or ("name",)))
