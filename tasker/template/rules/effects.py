"""Rules of `effect`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tasker.template.documents import EVERY_STEP, StepDraft, entries
from tasker.template.effects import ONCE, PURE, TRANSACTIONAL
from tasker.template.graph import DependencyGraph
from tasker.template.retry import OLDER_KEYS


def keys_fit_the_effect(graph: DependencyGraph) -> None:
    """Check that no other key of a step contradicts its effect."""
    for step in graph.steps.values():
        if step.made_for is None and (check := _CHECKS.get(step.values.get("effect", ""))) is not None:
            check(step)


def results_may_be_stored(graph: DependencyGraph) -> None:
    """Check that `memoize` belongs to a pure step with one instance, and has a time to live."""
    for step in graph.steps.values():
        if step.made_for is not None or (memoize := step.values.get("memoize")) is None:
            continue
        if step.values.get("effect") != PURE:
            message = f"`{step.name}` has `memoize`, and a stored result replaces only a computation"
            step.report("T200", message, step.location("memoize"), "add `effect: pure` if the handler only computes")
        if "for_each" in step.values or (step.type is not None and step.type.is_pattern):
            message = f"`{step.name}` has an instance for each part of its work, and `memoize` is for one result"
            step.report("T201", message, step.location("memoize"), "remove it, or memoize the step above")
        if memoize.get("ttl") == 0:
            step.report("T203", "a `ttl` of 0s stores nothing", step.location("memoize", "ttl"), "write a duration")


def _check_once(step: StepDraft) -> None:
    hint = "remove it; after an unknown outcome an operator decides (`tasker task step complete` or `reset`)"
    if step.reading.has(*step.path, "retry"):
        message = f"`{step.name}` runs once, and has `retry`"
        step.report("T220", message, step.reading.key(*step.path, "retry"), hint)
    for key in sorted(OLDER_KEYS & step.values.get("lifecycle", {}).keys()):
        message = f"`{step.name}` runs once, and has `{key}`"
        step.report("T220", message, step.reading.key(*step.path, "lifecycle", key), hint)
    if step.values.get("on_worker_lost") == "retry":
        message = f"`{step.name}` runs once, and would run again when its worker is lost"
        step.report("T221", message, step.location("on_worker_lost"), "remove it")


def _check_transactional(step: StepDraft) -> None:
    if step.values.get("execution", {}).get("mode") == "process":
        message = f"`{step.name}` uses the connection of its worker, which no child process has"
        step.report("T222", message, step.location("execution", "mode"), "write `thread` or `async`, or remove it")
    reason = "each instance runs several items" if "for_each" in step.values else None
    if step.type is not None and step.type.expands:
        reason = f"a {step.type} step is completed together with the steps that it creates"
    if reason is not None:
        hint = "put the transaction into a step below it"
        step.report("T224", f"`{step.name}` cannot be transactional: {reason}", step.location("effect"), hint)


def _check_pure(step: StepDraft) -> None:
    if step.reading.has(*step.path, "compensate"):
        message = f"`{step.name}` is pure, so there is nothing to undo"
        step.report("T223", message, step.reading.key(*step.path, "compensate"), "remove it, or write another `effect`")
    for number, event in enumerate(step.values.get("publishes_events", ())):
        if isinstance(event, Mapping) and event.get("delivery_mode") == "fast":
            message = f"`{step.name}` may run more often than it completes, and each run would publish the event"
            location = step.location("publishes_events", number, "delivery_mode")
            step.report("T223", message, location, "write `durable`, or another `effect`")


_CHECKS = {ONCE: _check_once, TRANSACTIONAL: _check_transactional, PURE: _check_pure}


def overrides_fit_the_effect(graph: DependencyGraph, document: Mapping[str, Any]) -> None:
    """Check that no environment gives retries to a step that runs once."""
    for environment in document.get("environments", {}):
        for path, override in entries(document, environment):
            step = graph.steps.get(override["name"])
            if step is None or override["name"] == EVERY_STEP or "retry" not in override:
                continue
            if step.values.get("effect") == ONCE:
                message = f"`{step.name}` runs once, and `{environment}` gives it `retry`"
                step.report("T220", message, step.reading.key(*path, "retry"), "remove it")
