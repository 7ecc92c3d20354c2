"""Events for which steps of a simulated task wait, from their mocks."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from tasker.errors import UsageError
from tasker.handlers.claims import Suspension
from tasker.simulation.mocks import Mock
from tasker.simulation.run import SimulatedTask
from tasker.simulation.steps import SimulatedStep, Waiting
from tasker.simulation.times import value_at
from tasker.template.schema_check import check_result

TASK = "00000000-0000-7000-8000-000000000001"


def mocked_event(task: SimulatedTask, wait: Mapping[str, Any], payload: Any, after_ms: int) -> dict[str, Any]:
    """Return an event as the result of a wait shows it; the first of several kinds that its schema fits."""
    fitting = (each for each in wait["events"] if each["schema"] is None or not check_result(each["schema"], payload))
    if (of := next(fitting, None)) is None:
        raise UsageError(
            f"the mocked payload fits no schema of the wait for {wait['events'][0]['event']}: {payload!r:.80}"
        )
    at = task.at + timedelta(milliseconds=task.now + after_ms)
    key = None if of["key"] is None else value_at(of["key"], task.values, task.steps)[0]
    return {
        "event": of["event"],
        "key": "" if key is None else str(key),
        "payload": payload,
        "event_uuid": TASK,
        "sent_at": at.isoformat(),
    }


def waiting_of(task: SimulatedTask, step: SimulatedStep, wait: Suspension, mock: Mock | None) -> Waiting:
    """Return how the wait of a handler ends: with the next mocked event if it comes in time, or by its timeout."""
    if mock is None:
        raise UsageError(
            f"the handler of {step.name!r} waits for the event {wait.event}, and no mock says whether it comes",
            hint="mock it: `mock.event(PAYLOAD, after='2h')`, `mock.no_event()`, or `{event: PAYLOAD}` in a file",
        )
    call = mock.call(step.events + 1) if mock.calls else None
    if call is None or (wait.timeout_ms is not None and call.takes_ms >= wait.timeout_ms):
        return Waiting(wait, None)
    if wait.schema is not None and (problems := check_result(wait.schema, call.event)):
        raise UsageError(f"the mocked payload does not fit the wait of {step.name!r} for {wait.event}: {problems[0]}")
    at = task.at + timedelta(milliseconds=task.now + call.takes_ms)
    event = {"event": wait.event, "key": wait.key, "payload": call.event, "event_uuid": TASK, "sent_at": at.isoformat()}
    return Waiting(wait, call.takes_ms, event)
