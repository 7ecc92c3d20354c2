"""Rules of steps that wait without a worker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tasker.template.documents import StepDraft
from tasker.template.graph import DependencyGraph
from tasker.template.wait_keys import NEVER, OF_EVENTS, OF_TIMES

WITHOUT_WORKER: Final = (
    *("handler", "result_schema", "retry", "timeout_seconds", "execution", "on_worker_lost"),
    *("circuit_breaker", "lifecycle", "system_dependency"),
    *("concurrency", "rate_limit", "limits", "requires", "slots"),
)
"""Keys of steps that a worker runs."""
OF_KINDS: Final = (("time", "wait", OF_TIMES), ("event", "wait_for_event", OF_EVENTS))
"""What a step waits for, the type for that, and its keys."""


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


def _check_keys(step: StepDraft) -> None:
    assert step.type is not None
    waits = step.type.traits.waits
    for kind, type_, keys in OF_KINDS:
        for key in sorted(keys):
            if key in step.values and waits != kind:
                message = (
                    f"`{key}` belongs to a step that waits for {_a(kind)}, and `{step.name}` is a {step.type} step"
                )
                hint = f"write `type: {type_}`" if step.type.is_plain else f"add a step with `type: {type_}` before it"
                step.report("T141", message, step.reading.key(*step.path, key), hint)
    without = WITHOUT_WORKER if step.type.starts_children else (*WITHOUT_WORKER, "inputs")
    for key in without if waits else ():
        if step.reading.has(*step.path, key):
            message = f"`{key}` has no effect on a {step.type} step, which no worker runs"
            step.report("T141", message, step.reading.key(*step.path, key), "remove it")


def _a(kind: str) -> str:
    return "an event" if kind == "event" else "a time"


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
    if not step.reading.has(*step.path, "timeout"):
        hint = "write `timeout: 2h`, or `timeout: never` for a wait without an end"
        step.report("T099", f"`{step.name}` has no `timeout`", step.location("type"), hint)
    place = step.reading.key(*step.path, "on_failure")
    if "on_timeout" in values and place != step.reading.key(*step.path, "on_timeout"):
        step.report("T144", "`on_timeout` and `on_failure` both say what a timeout means", place, "keep one of them")
    if values.get("take") == "all" and values.get("timeout") == NEVER:
        hint = "write a duration: the events that came until then are the result"
        step.report("T144", "`take: all` collects until the `timeout`", step.location("timeout"), hint)
    if values.get("take") == "all" and values.get("count", 1) != 1:
        step.report("T144", "`take: all` and `count` exclude each other", step.location("count"), "write one of them")
