"""Rules of when steps begin (times and limits), and by when tasks end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tasker.template.ancestry import Ancestry
from tasker.template.diagnostics import did_you_mean, listed
from tasker.template.documents import StepDraft
from tasker.template.durations import readable_duration
from tasker.template.graph import DependencyGraph
from tasker.template.step_types import Origin

PLACES: Final = (
    ("T061", ("not_before",)),
    ("T061", ("until",)),
    ("T116", ("concurrency", "key")),
    ("T116", ("rate_limit", "key")),
    ("T116", ("key",)),
    ("T202", ("memoize", "key")),
)


def one_time_for_each_step(graph: DependencyGraph) -> None:
    """Check that no step has both `delay` and `not_before`."""
    for step in graph.steps.values():
        if "delay" in step.values and "not_before" in step.values:
            message = "`delay` and `not_before` exclude each other"
            step.report("T062", message, step.location("not_before"), "write one of them")


def deadline_is_after_all_delays(graph: DependencyGraph, document: Mapping[str, Any]) -> None:
    """Check that the delays of no chain of steps alone take as long as the deadline of the task."""
    limit = document.get("deadline")
    if limit is None or graph.cyclic:
        return
    waited: dict[str, float] = {}
    for name in graph.order:
        step = graph.steps[name]
        longest = min if step.type is not None and step.type.converges else max  # a branch may not be taken
        waited[name] = longest((waited[above] for above in graph.parents[name]), default=0.0)
        waited[name] += step.values.get("delay", 0.0) + step.values.get("for", 0.0)
        if waited[name] >= limit:
            message = f"`{name}` never begins: its delays take {readable_duration(waited[name])}, the `deadline` is "
            hint = "raise the `deadline` of the template, or lower the `delay`"
            place = step.location("for" if "for" in step.values else "delay")
            step.report("T063", f"{message}{readable_duration(limit)}", place, hint)
            return


def places_are_in_steps_above(graph: DependencyGraph) -> None:
    """Check that times and keys are read from results of steps that are complete by then."""
    above: Ancestry | None = None
    for step in graph.steps.values():
        for code, place, path in _places(step):
            above = above or Ancestry(graph.parents)
            name = place["step"]
            names = [each for each in graph.order if each in above.of(step.name)]
            if name not in names:
                hint = did_you_mean(name, names) or f"steps above: {listed(names) or 'none'}"
                step.report(code, f"`{name}` is not a step above `{step.name}`", step.location(*path), hint)
            elif graph.is_from(name, Origin.BATCH):
                message = f"`{name}` has an instance for each batch, and none of them is meant"
                step.report(code, message, step.location(*path), "let the step that joins them return the value")


def one_number_for_each_limit(graph: DependencyGraph) -> None:
    """Check that steps that share a limit give it the same number."""
    numbers: dict[str, tuple[str, int]] = {}
    for step in graph.steps.values():
        limit = step.values.get("concurrency", {})
        if limit.get("scope", "step") == "step" or "limit" not in limit:
            continue
        first, number = numbers.setdefault(limit["scope"], (step.name, limit["limit"]))
        if number != limit["limit"]:
            message = f"`{first}` limits the same {limit['scope']} to {number}"
            step.report(
                "T117", message, step.location("concurrency", "limit"), f"write {number} here, or another `scope`"
            )


def each_limit_once(graph: DependencyGraph) -> None:
    """Check that no step names a limit twice: it could have a permit for one key only."""
    for step in graph.steps.values():
        names = [limit.get("name") for _, limit in _named_limits(step)]
        for number, name in enumerate(names):
            if name is not None and name in names[:number]:
                location = step.location("limits", number)
                step.report("T125", f"`{step.name}` names the limit `{name}` twice", location, "keep one of them")


def _places(step: StepDraft) -> Iterator[tuple[str, Mapping[str, Any], tuple[str | int, ...]]]:
    """Yield the places in results that a step reads, each with the code of its errors and the path of its key."""
    for code, path in PLACES:
        value: Any = step.values
        for key in path:
            value = value.get(key, {})
        if "step" in value:
            yield code, value, path
    for number, event in enumerate(step.values.get("events", ())):
        if isinstance(event, Mapping) and "step" in event.get("key", {}):
            yield "T116", event["key"], ("events", number, "key")
    for path in (("from",), ("escalate", "to")):
        for number, subject in enumerate(_persons(step, path)):
            if isinstance(subject, Mapping) and "step" in subject:
                yield "T116", subject, (*path, "subjects", number)
    for number, limit in _named_limits(step):
        if "step" in limit.get("key", {}):
            yield "T116", limit["key"], ("limits", number, "key")


def _persons(step: StepDraft, path: tuple[str, ...]) -> Sequence[Any]:
    value: Any = step.values
    for key in path:
        value = value.get(key, {})
    subjects: Sequence[Any] = value.get("subjects", ())
    return subjects


def _named_limits(step: StepDraft) -> Iterator[tuple[int, Mapping[str, Any]]]:
    limits = enumerate(step.values.get("limits", ()))
    return ((number, limit) for number, limit in limits if isinstance(limit, Mapping))
