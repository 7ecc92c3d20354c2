"""Rules of steps that wait without a worker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tasker.template.documents import StepDraft
from tasker.template.graph import DependencyGraph
from tasker.template.rules.approvals import check_approval
from tasker.template.wait_keys import KINDS_OF_KEYS, NEVER, TYPES

WITHOUT_WORKER: Final = (
    *("handler", "inputs", "result_schema", "retry", "timeout_seconds", "execution", "on_worker_lost", "effect"),
    "memoize",
    *("circuit_breaker", "lifecycle", "system_dependency"),
    *("concurrency", "rate_limit", "limits", "requires", "slots"),
)
"""Keys of steps that a worker runs."""
A: Final = {"time": "a time", "event": "an event", "person": "a person"}
"""What a step waits for, with its article."""


def waits_have_an_end(graph: DependencyGraph) -> None:
    """Check that each step that waits has one end, and only keys with a meaning for it."""
    for step in graph.steps.values():
        if step.type is None or step.made_for is not None:
            continue
        _check_keys(step)
        if step.type.traits.waits == "time":
            _check_time(step)
        elif step.type.traits.waits == "event":
            _check_events(step)
            _check_timeout(step)
        elif step.type.traits.waits == "person":
            check_approval(step)
            _check_timeout(step)


def _check_keys(step: StepDraft) -> None:
    assert step.type is not None
    waits = step.type.traits.waits
    for key in sorted(KINDS_OF_KEYS.keys() & step.values.keys()):
        if waits not in KINDS_OF_KEYS[key]:
            kind = KINDS_OF_KEYS[key][0]
            message = f"`{key}` belongs to a step that waits for {A[kind]}, and `{step.name}` has `type: {step.type}`"
            write = f"`type: {TYPES[kind]}`"
            hint = f"write {write}" if step.type.is_plain else f"add a step with {write} before it"
            step.report("T141", message, step.reading.key(*step.path, key), hint)
    for key in WITHOUT_WORKER if waits else ():
        if step.reading.has(*step.path, key) and not (key == "inputs" and waits in ("person", "task")):
            message = f"`{key}` has no effect on a step with `type: {step.type}`, which no worker runs"
            step.report("T141", message, step.reading.key(*step.path, key), "remove it")


def _check_time(step: StepDraft) -> None:
    if "for" in step.values and "until" in step.values:
        step.report("T140", "`for` and `until` exclude each other", step.location("until"), "write one of them")
    elif not any(step.reading.has(*step.path, key) for key in ("for", "until")):
        hint = "write `for: 3d`, or `until: input.trip.starts_at`"
        step.report("T140", f"`{step.name}` does not say how long it waits", step.location("type"), hint)


def _check_events(step: StepDraft) -> None:
    values = step.values
    if "events" in values and any(key in values for key in ("event", "key", "schema")):
        key = next(key for key in ("event", "key", "schema") if key in values)
        hint = f"write `{key}` in each item of `events`"
        step.report("T143", f"`events` and `{key}` exclude each other", step.location(key), hint)
    elif not any(step.reading.has(*step.path, key) for key in ("event", "events")):
        hint = "write `event: payment.settled`, the name that the sender uses"
        step.report("T143", f"`{step.name}` does not say which event it waits for", step.location("type"), hint)
    for number, event in enumerate(values.get("events", ())):
        if isinstance(event, Mapping) and not step.reading.has(*step.path, "events", number, "event"):
            step.report("T143", "an event without its name", step.location("events", number), "add `event: NAME`")
    if values.get("take") == "all" and values.get("timeout") == NEVER:
        hint = "write a duration: the events that came until then are the result"
        step.report("T144", "`take: all` collects until the `timeout`", step.location("timeout"), hint)
    if values.get("take") == "all" and values.get("count", 1) != 1:
        step.report("T144", "`take: all` and `count` exclude each other", step.location("count"), "write one of them")


def _check_timeout(step: StepDraft) -> None:
    if not step.reading.has(*step.path, "timeout"):
        hint = "write `timeout: 2h`, or `timeout: never` for a wait without an end"
        step.report("T099", f"`{step.name}` has no `timeout`", step.location("type"), hint)
    place = step.reading.key(*step.path, "on_failure")
    if "on_timeout" in step.values and place != step.reading.key(*step.path, "on_timeout"):
        step.report("T144", "`on_timeout` and `on_failure` both say what a timeout means", place, "keep one of them")
