"""Events that the attempts of a simulated run publish."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tasker.dataclasses import dataclass
from tasker.engine.exchange import Result
from tasker.execution.attempt.attempt import Attempt
from tasker.execution.event_making import fires, outcome_word, own_payload
from tasker.handlers.claims import Failure, Success


@dataclass(frozen=True, slots=True)
class SimulatedEvent:
    """Event published with the end of an attempt. `withheld` is the reason why it would not be published."""

    name: str
    payload: Mapping[str, Any] | None
    step: str
    delivery_mode: str = "durable"
    withheld: str | None = None


def events_of(attempt: Attempt, ending: Success | Failure) -> Iterator[SimulatedEvent]:
    """Yield the events that the template declares and those that the handler published, as the outcome fires them.

    Publishers of one's own are not called: an event of theirs has the step's result, or its failure, as its payload.
    """
    step, name = attempt.step, attempt.claim.name
    if not step.publishes_events and not ending.events:
        return
    result = Result(attempt.claim, attempt.plan, 0, ending)
    outcome = outcome_word(result, step)
    for declared in step.publishes_events:
        if fires(declared["condition"], outcome):
            payload = own_payload(result, step, declared.get("schema"))
            yield SimulatedEvent(declared["name"], payload, name, declared["delivery_mode"])
    for event in ending.events:
        if fires(event.condition, outcome):
            own = json.loads(event.payload.text) if event.payload else None
            yield SimulatedEvent(event.name, own, name, event.delivery_mode, event.withheld)
