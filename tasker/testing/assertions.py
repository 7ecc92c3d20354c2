"""Assertions about tasks of tests, simulated or real, with readable differences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from tasker.simulation.outcome import SimulatedRun
from tasker.simulation.scenarios import differences
from tasker.testing.fakes import ResourceFakes
from tasker.views.tasks import StepReport, TaskReport

Ran = SimulatedRun | TaskReport
"""A task that ran: simulated (`tasker_sim`), or the report of a real one (`tasker_run`)."""
FIELDS = ("state", "attempts", "error_type", "error_code", "result", "inputs", "started_ms", "ended_ms")


class Event(Protocol):
    """Event that a test sees."""

    @property
    def name(self) -> str: ...
    @property
    def payload(self) -> Mapping[str, Any] | None: ...


def assert_route(run: Ran, *steps: str) -> None:
    """Assert that exactly these steps ran, in this order; of a real task in any order.

    The message says why a missing one did not run in a simulated run.
    """
    if isinstance(run, TaskReport):
        ran = [step.name for step in run.steps.values() if step.attempts and not step.name.endswith((".when", ".each"))]
        if sorted(ran) != sorted(steps):
            raise AssertionError(f"expected {', '.join(steps)}\n     was {', '.join(ran)}")
    elif run.route != [*steps]:
        absent = [name for name in steps if name not in run.route]
        whys = "".join(f"\n  {name} did not run: {run.why(name)}" for name in absent)
        raise AssertionError(f"expected {' > '.join(steps)}\n     was {' > '.join(run.route)}{whys}")


def assert_step(run: Ran, name: str, **expected: Any) -> None:
    """Assert fields of a step: `state` (or `status`), `attempts`, `error_type`, `error_code`, `result`, `inputs`.

    An object may have further keys than expected. A real task has no `inputs` here.
    """
    lines = []
    for key, wanted in expected.items():
        field = {"status": "state"}.get(key, key)
        if field not in FIELDS:
            raise TypeError(f"assert_step knows no field {key!r}; it knows: {', '.join(FIELDS)}")
        lines += differences(wanted, _field(run, name, field), f"{name}.{key}")
    _require_none(lines)


def assert_results(run: Ran, **expected: Any) -> None:
    """Assert results by step; an object may have further keys than expected. Differences are named by their paths."""
    lines: list[str] = []
    for name, wanted in expected.items():
        lines += differences(wanted, _field(run, name, "result"), name)
    _require_none(lines)


def assert_published(events: Iterable[Event] | SimulatedRun, name: str, payload: Any = None, *, times: int = 1) -> None:
    """Assert that an event was published that often; with `payload`, an event that has at least its keys.

    Args:
        events: The fixture `tasker_events`, or a simulated run.
        name: Name of the event.
        payload: Expected payload; an object may have further keys.
        times: Number of such events; 0: none.
    """
    published = list(events.events if isinstance(events, SimulatedRun) else events)
    named = [event for event in published if event.name == name]
    found = named if payload is None else [each for each in named if not differences(payload, each.payload, name)]
    if len(found) == times:
        return
    lines = [f"expected {name!r} {times} times, was published {len(found)} times"]
    if payload is not None:
        lines += [line for event in named for line in differences(payload, event.payload, name)]
    names = ", ".join(event.name for event in published) or "none"
    raise AssertionError("\n  ".join([*lines, f"published: {names}"]))


def assert_no_effects(resources: ResourceFakes) -> None:
    """Assert that no handler used a resource."""
    if resources.calls:
        calls = "".join(f"\n  {call}" for call in resources.calls)
        raise AssertionError(f"expected no calls of resources, got {len(resources.calls)}:{calls}")


def _field(run: Ran, name: str, field: str) -> Any:
    if isinstance(run, SimulatedRun):
        step = run.step(name)
        if field == "inputs":
            return run.inputs(name)
        value = getattr(step, field)
        return str(value) if field == "state" else value
    if name not in run.steps:
        raise AssertionError(f"the task has no step {name!r}; it has: {', '.join(run.steps)}")
    return _of_report(run.steps[name], field)


def _of_report(step: StepReport, field: str) -> Any:
    if field in ("error_type", "error_code"):
        return step.failures[-1].get(field) if step.failures else None
    if field in ("inputs", "started_ms", "ended_ms"):
        raise TypeError(f"a real task has no {field!r} here: use a simulated run")
    return getattr(step, field)


def _require_none(lines: list[str]) -> None:
    if lines:
        raise AssertionError("\n".join(lines))
