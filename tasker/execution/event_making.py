"""Domain events that the end of an attempt publishes.

Durable events go into the database together with the result; `tasker.write_events` writes them if, and only if, the
result is accepted. `AcceptedEventBus` publishes events for this process after that.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from time import monotonic, perf_counter
from typing import Any, TypeAlias

from tasker.engine.exchange import AnnouncedEvents, Result, ResultEvents
from tasker.engine.retry import Fail, decide_failure
from tasker.errors import NotStorable
from tasker.execution.custom_publishers import LEFT_OUT, CustomPublishers, PublisherAnswer
from tasker.execution.event_bus import OnPublished
from tasker.handlers.claims import Claim, Failure, HandlerEvent
from tasker.handlers.context import StepContext
from tasker.handlers.events.publisher import BasePublisher, EventDeclaration, StepEventContext, StepResult
from tasker.handlers.events.registries import PublisherRegistry
from tasker.json_values import as_stored, encode
from tasker.logging.lines import ids_of, log_line
from tasker.plugins.hook_arguments import EventPublished
from tasker.redaction import REDACTED, has_sensitive, marks, redact_by_schema
from tasker.template.plan import Plan, StepPlan
from tasker.template.schema_check import check_result


def own_payload(result: Result, step: StepPlan, schema: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Return the result, or the failure, as `tasker.write_events` publishes it.

    Values that `result_schema` marks as `x-sensitive` are included only where the event's own schema marks them, too.
    """
    if result.failure is not None:
        return _of_failure(result, result.failure, step)
    return _of_result(as_stored(result.success.encoded) if result.success else None, step, schema)


def says_all(result: Result, step: StepPlan) -> bool:
    """Return True when the payload has all of the result or failure, so that the engine can copy it from there."""
    return not has_sensitive(result.plan) if result.failure else not marks(step.result_schema)


def _of_result(value: Any, step: StepPlan, schema: Mapping[str, Any] | None) -> Mapping[str, Any]:
    plain = dict(value or {})
    hidden = redact_by_schema(step.result_schema, plain)
    visible: Mapping[str, Any] = _with_declared(plain, hidden, redact_by_schema(schema, plain))
    return visible


def _with_declared(plain: Any, hidden: Any, declared: Any) -> Any:
    """Return the redacted value, with those values restored that the event's schema declares as sensitive."""
    if declared == REDACTED or hidden == plain:
        return plain
    if isinstance(plain, Mapping) and isinstance(hidden, Mapping) and isinstance(declared, Mapping):
        return {key: _with_declared(value, hidden[key], declared[key]) for key, value in plain.items()}
    return hidden


def _of_failure(result: Result, failure: Failure, step: StepPlan) -> dict[str, Any]:
    return {
        "message": REDACTED if has_sensitive(result.plan) else failure.message,
        "error_type": failure.error_type,
        "error_code": failure.error_code,
        "retryable": failure.retryable,
        "attempt": result.claim.attempt,
        "max_attempts": max(1, step.retry.max_attempts),
    }


Given: TypeAlias = Callable[[], StepContext | None]
GENERIC = "generic_publisher"
NO_EVENTS = ResultEvents()
_log = logging.getLogger("tasker.domain_events")


def no_publishers() -> None:
    """Return no context: no publisher needs the handler's."""


class EventFactory:
    """Factory of the events of results. Never raises; only user-defined publishers can take noticeable time."""

    def __init__(
        self, custom: CustomPublishers, new_uuid: Callable[[], str], on_published: OnPublished | None = None
    ) -> None:
        self._custom, self._new_uuid, self._on_published = custom, new_uuid, on_published
        self._unknown: set[str] = set()
        self.refused = 0
        """Number of durable events withheld because of a defect of their publisher or payload."""

    async def with_events(self, result: Result, step: StepPlan, given: Given = no_publishers) -> Result:
        """Return the result with the events that it publishes; `given` builds the context of the handler's call."""
        events = NO_EVENTS
        outcome = outcome_word(result, step)
        for number, declared in enumerate(step.publishes_events):
            if fires(declared["condition"], outcome):
                try:
                    made = await self._timed(result, step, declared, given)
                    events = events.and_(made, number, declared["delivery_mode"])
                except Exception as defect:  # a defect of Tasker must not lose the step
                    made = _not_made(result.claim, declared["name"], defect)
                    events = events.and_(made, number, declared["delivery_mode"])
        if result.outcome.events:
            events = self._published(result, step, outcome, events)
        return replace(result, events=events)

    def _published(self, result: Result, step: StepPlan, outcome: str, events: ResultEvents) -> ResultEvents:
        for number, event in enumerate(result.outcome.events, len(step.publishes_events)):
            if event.carried and outcome == "retryable_failure":
                continue  # the event stays with the position that the next attempt continues from
            should_fire = fires(event.condition, outcome)
            try:
                made = self._of_handler(result, step, event, fires=should_fire)
            except Exception as defect:  # a defect of Tasker, as above
                made = _not_made(result.claim, event.name, defect)
            events = events.and_published(made, number, event, deliver=should_fire)
        return events

    def _of_handler(self, result: Result, step: StepPlan, event: HandlerEvent, *, fires: bool) -> AnnouncedEvents:
        began = perf_counter()
        payload = None if event.payload is None else json.loads(event.payload.text)
        schema = _schema_of(event.name, step, result.plan)
        answer = PublisherAnswer(payload, None, event.withheld or _misfit(schema, payload))
        made = self._announced(result, event.name, event.delivery_mode, answer, step.handler.callable)
        made = replace(made, took_ms=(perf_counter() - began) * 1000)
        if fires and made.withheld is not None:
            self._count_withheld(result, step, event.name, event.delivery_mode, made.withheld)
            if self._on_published is not None:
                mode, namespace = event.delivery_mode, result.claim.namespace
                self._on_published(EventPublished(event.name, namespace, mode, True, made.took_ms))
        return made

    async def _timed(
        self, result: Result, step: StepPlan, declared: Mapping[str, Any], given: Given
    ) -> AnnouncedEvents:
        if self._on_published is None:
            return await self._made(result, step, declared, given)
        began = perf_counter()
        made = replace(await self._made(result, step, declared, given), took_ms=(perf_counter() - began) * 1000)
        if made.withheld is not None and not made.withheld.endswith(LEFT_OUT):
            mode, namespace = declared["delivery_mode"], result.claim.namespace
            self._on_published(EventPublished(declared["name"], namespace, mode, True, made.took_ms))
        return made

    async def _made(self, result: Result, step: StepPlan, declared: Mapping[str, Any], given: Given) -> AnnouncedEvents:
        publisher = self._publisher(result.claim, declared)
        if publisher is None:
            answer = PublisherAnswer(own_payload(result, step, declared.get("schema")))
        else:
            answer = await self._custom.ask(publisher, _context(result, step, declared, given), declared["name"])
        answer = (
            answer
            if answer.withheld
            else PublisherAnswer(answer.payload, answer.metadata, _misfit(declared.get("schema"), answer.payload))
        )
        name, mode = declared["name"], declared["delivery_mode"]
        made = self._announced(result, name, mode, answer, publisher.publisher_name if publisher else GENERIC)
        if made.withheld is not None:
            self._count_withheld(result, step, name, mode, made.withheld)
            return made
        plain = publisher is None and says_all(result, step)
        return replace(made, publisher=publisher, payload=None if plain else made.payload)

    def _announced(
        self, result: Result, name: str, mode: str, answer: PublisherAnswer, fired_by: str
    ) -> AnnouncedEvents:
        if answer.withheld is not None:
            return AnnouncedEvents(withheld=answer.withheld)
        event = _event(result, name, answer, fired_by)
        event["event_id"] = self._new_uuid()
        more = dict(answer.metadata or {})
        if mode == "broadcast":  # broadcast and durable copies of an event must be equal
            more["fired_at"] = event["metadata"]["fired_at"]
        try:
            return AnnouncedEvents(event, payload=encode(answer.payload), metadata=encode(more) if more else None)
        except NotStorable as problem:
            return AnnouncedEvents(withheld=f"its payload cannot be stored: {problem}")

    def _publisher(self, claim: Claim, declared: Mapping[str, Any]) -> BasePublisher | None:
        name = declared.get("publisher")
        publisher = None if name is None else PublisherRegistry.instance().get(name)
        if name is not None and publisher is None and name not in self._unknown:
            self._unknown.add(name)
            log_fields = {"publisher": name, "event_name": declared["name"], "effect": "the result is published"}
            log_line(_log, logging.WARNING, "publisher_unknown", ids_of(claim) | log_fields)
        return publisher

    def _count_withheld(self, result: Result, step: StepPlan, event: str, mode: str, why: str) -> None:
        self.refused += mode != "fast" and not why.endswith(LEFT_OUT)
        level = logging.INFO if why.endswith(LEFT_OUT) else logging.WARNING
        fields = ids_of(result.claim) | {"error": why, "event_name": event, "handler": step.handler.callable}
        log_line(_log, level, "Failed to publish domain event - step will continue", fields)


def _not_made(claim: Claim, event: str, defect: Exception) -> AnnouncedEvents:
    """Log the exception that prevented an event, and return a withheld event."""
    why = repr(defect)
    fields = ids_of(claim) | {"error": why, "error_type": type(defect).__name__, "event_name": event}
    log_line(_log, logging.ERROR, "event_payload_failed", fields, raised=True)
    return AnnouncedEvents(withheld=why)


def fires(condition: str, outcome: str) -> bool:
    """Return True when an event with this condition fires for this outcome, as `tasker.event_fires` does."""
    return condition in (outcome, "always") or (condition == "failure" and outcome != "success")


def outcome_word(result: Result, step: StepPlan) -> str:
    """Return how the attempt ended, as the conditions of events name it."""
    if result.failure is None:
        return "success"
    decision = decide_failure(step.retry, result.claim.attempt, result.failure, 0.5, result.claim.times(monotonic()))
    return "permanent_failure" if isinstance(decision, Fail) else "retryable_failure"


def _context(result: Result, step: StepPlan, declared: Mapping[str, Any], given: Given) -> StepEventContext:
    claim, failure = result.claim, result.failure
    metadata: dict[str, Any] = {
        "event_name": declared["name"],
        "success": failure is None,
        "outcome": outcome_word(result, step),
        "execution_time_ms": result.duration_ms,
    }
    if failure is not None:
        metadata |= {name: getattr(failure, name) for name in ("error_type", "error_code", "retryable")}
        metadata["error_message"] = failure.message
    return StepEventContext(
        task_uuid=claim.task_uuid,
        step_uuid=claim.step_uuid,
        step_name=claim.name,
        namespace=claim.namespace,
        correlation_id=claim.correlation_id,
        result=_value(result),
        metadata=metadata,
        declaration=EventDeclaration(**declared),
        step_result=_step_result(result),
        step_context=given(),
    )


def _step_result(result: Result) -> StepResult:
    extra_metadata: dict[str, Any] = {"execution_time_ms": result.duration_ms}
    if result.failure is not None:
        extra_metadata |= {"error_type": result.failure.error_type, "error_code": result.failure.error_code}
    return StepResult(
        success=result.failure is None, result=_value(result), metadata={**result.outcome.metadata, **extra_metadata}
    )


def _event(result: Result, name: str, answer: PublisherAnswer, fired_by: str) -> dict[str, Any]:
    claim = result.claim
    origin = {
        "task_uuid": claim.task_uuid,
        "step_uuid": claim.step_uuid,
        "step_name": claim.name,
        "namespace": claim.namespace,
        "correlation_id": claim.correlation_id,
        "fired_at": datetime.now(UTC).isoformat(),
        "fired_by": fired_by,
    }
    return {
        "event_name": name,
        "event_version": "1.0",
        "metadata": {**(answer.metadata or {}), **origin},
        "payload": dict(answer.payload or {}),
        "execution_result": _execution(result),
    }


def _execution(result: Result) -> dict[str, Any]:
    failure = result.failure
    return {
        "success": failure is None,
        "result": _value(result),
        "error_message": failure.message if failure else None,
        "error_type": failure.error_type if failure else None,
        "execution_time_ms": result.duration_ms,
    }


def _value(result: Result) -> dict[str, Any] | None:
    value = as_stored(result.success.encoded) if result.success else None
    return value if isinstance(value, dict) else None


def _schema_of(name: str, step: StepPlan, plan: Plan) -> Mapping[str, Any] | None:
    """Return the schema that the template declares for events of this name."""
    for listed in (*step.publishes_events, *plan.domain_events):
        if listed["name"] == name and listed.get("schema") is not None:
            schema: Mapping[str, Any] = listed["schema"]
            return schema
    return None


def _misfit(schema: Mapping[str, Any] | None, payload: Any) -> str | None:
    if not isinstance(payload, Mapping):
        return f"its payload is no mapping: {type(payload).__name__}"
    problems: Sequence[object] = check_result(schema, payload) if schema else ()
    return f"its payload does not fit the schema: {'; '.join(map(str, problems[:3]))}" if problems else None
