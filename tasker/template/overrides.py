"""Overrides of a step's settings by an environment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tasker.contracts.dataclasses import dataclass
from tasker.template.diagnostics import did_you_mean, listed
from tasker.template.drafts import EVERY_STEP, StepDraft
from tasker.template.reading import DocumentReading, Path


@dataclass(frozen=True)
class StepOverrides:
    """Settings of a step that an environment may override. `retry_path` is the path of the applied `retry` block."""

    retry: Mapping[str, Any] | None
    retry_path: Path
    retry_overridden: bool
    timeout_seconds: float | None
    initialization: Mapping[str, Any]


Overrides = Mapping[str, Sequence[tuple[Path, Mapping[str, Any]]]]
"""Overrides of an environment with their paths, by step name."""


def overrides(document: Mapping[str, Any], environment: str | None) -> Overrides:
    """Return the overrides of an environment; None: none."""
    found: dict[str, list[tuple[Path, Mapping[str, Any]]]] = {}
    for path, override in _entries(document, environment):
        found.setdefault(override["name"], []).append((path, override))
    return found


def settings(step: StepDraft, overridden: Overrides) -> StepOverrides:
    """Return the step's settings, overridden by those of `ALL`, then by the step's own entry."""
    handler = step.values.get("handler", {})
    result = StepOverrides(
        retry=step.values.get("retry"),
        retry_path=(*step.path, "retry"),
        retry_overridden=False,
        timeout_seconds=step.values.get("timeout_seconds"),
        initialization=handler.get("initialization", {}),
    )
    for name in (EVERY_STEP, step.name):
        for path, override in overridden.get(name, ()):
            result = _overlay(result, path, override)
    return result


def check_overrides(steps: Sequence[StepDraft], document: Mapping[str, Any], reading: DocumentReading) -> None:
    """Report overrides of steps that do not exist, and two overrides of one step in one environment."""
    names = {step.name: step for step in steps}
    for environment in document.get("environments", {}):
        seen: set[str] = set()
        for path, override in _entries(document, environment):
            name, place = override["name"], reading.value(*path, "name")
            if name not in names and name != EVERY_STEP:
                hint = did_you_mean(name, names) or f"steps: {listed(names)}"
                reading.report.add("T032", f"`{name}` is not a step of this template", place, hint)
            elif name in seen:
                reading.report.add("T032", f"a second override for `{name}`", place, "put both into one entry")
            seen.add(name)


def _entries(document: Mapping[str, Any], environment: str | None) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    overrides = document.get("environments", {}).get(environment, {}).get("steps", ())
    for index, override in enumerate(overrides):
        if isinstance(override, dict) and "name" in override:
            yield ("environments", str(environment), "steps", index), override


def _overlay(below: StepOverrides, path: Path, override: Mapping[str, Any]) -> StepOverrides:
    retried = "retry" in override
    handler = override.get("handler", {})
    return StepOverrides(
        retry=override["retry"] if retried else below.retry,
        retry_path=(*path, "retry") if retried else below.retry_path,
        retry_overridden=retried or below.retry_overridden,
        timeout_seconds=override.get("timeout_seconds", below.timeout_seconds),
        initialization={**below.initialization, **handler.get("initialization", {})},
    )
