"""Rule of circuit breakers that steps share by name."""

from __future__ import annotations

from tasker.template.build import step_breaker
from tasker.template.drafts import StepDraft
from tasker.template.graph import DependencyGraph


def settings_agree(graph: DependencyGraph) -> None:
    """Check that steps with the same circuit breaker give it the same settings."""
    first: dict[str, StepDraft] = {}
    for step in graph.steps.values():
        if (name := step.values.get("circuit_breaker", {}).get("name")) is None:
            continue
        other = first.setdefault(name, step)
        if step_breaker(step.values["circuit_breaker"]) != step_breaker(other.values["circuit_breaker"]):
            line = other.place("circuit_breaker", "name").line
            message = f"the circuit breaker `{name}` has other settings in the step `{other.name}` (line {line})"
            hint = "give both the same settings, or one of them another name"
            step.report("T036", message, step.place("circuit_breaker", "name"), hint)
