"""Spans of operations around attempts: answering a request, creating tasks, claiming steps, completing them.

The process that does an operation reports it, with the times of request and answer.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TypeAlias, TypeVar

from tasker.dataclasses import dataclass
from tasker.plugins.hook_arguments import AttemptEnded, RequestAnswered, StateTransition, TasksSubmitted
from tasker_otel.encoding import Common, Shape
from tasker_otel.identity import caller_of, part_span
from tasker_otel.spans import KnownTask, Spans, nanoseconds, state_of

REMEMBERED_CLAIMS = 10_000
Key: TypeAlias = tuple[str, int]
"""A claim of a step: the step, and the token of the claim."""
Times: TypeAlias = tuple[int, int]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Brought:
    """Attempt whose result is being reported, and the start of that, in nanoseconds since 1970."""

    task: KnownTask
    step: str
    attempt: int
    since: int


class Surroundings:
    """Factory of these spans, encoded. `spans` creates their parents; the same thread uses both."""

    def __init__(self, spans: Spans) -> None:
        self._spans = spans
        self._claims: OrderedDict[Key, Times] = OrderedDict()
        self._results: OrderedDict[Key, Brought] = OrderedDict()
        self._place, self._step = Common(()), Common(("step_uuid",))
        self._shape, self._request_shape = lru_cache(1000)(Shape), lru_cache(1000)(_of_request)

    def created(self, submitted: TasksSubmitted) -> Iterator[bytes]:
        """Yield `create_task` of each task whose trace is sampled."""
        end = nanoseconds(submitted.answered_at)
        times = (end - round(submitted.duration_ms * 1_000_000), end)
        shape = self._shape("create_task", (("task_name", submitted.template),))
        for new_task in submitted.tasks:
            task = self._spans.of(new_task, submitted.namespace, submitted.template)
            if task.identity.sampled:
                yield task.common + shape.encoded(part_span("create", new_task.task_uuid), task.identity.span_id, times)

    def moved(self, transitions: Sequence[StateTransition]) -> Iterator[bytes]:
        """Yield `submit_result` of each attempt of this process whose result was accepted; remember claims."""
        for transition in transitions:
            if transition.step_uuid is not None and transition.token is not None:
                key, end = (transition.step_uuid, transition.token), nanoseconds(transition.answered_at)
                if transition.to_state == "in_progress":
                    _remember(self._claims, key, (nanoseconds(transition.asked_at), end))
                elif (brought := self._results.pop(key, None)) is not None:
                    yield self._of_step("submit_result", key, brought, (brought.since, end), transition.to_state)

    def ended(self, ended: AttemptEnded) -> bytes | None:
        """Return `step_claim` of an attempt, or None if its trace is not sampled or the claim is not remembered."""
        attempt = ended.attempt
        key, task = (attempt.step_uuid, attempt.token), self._spans.known(attempt)
        claimed = self._claims.pop(key, None)
        if not task.identity.sampled:
            return None
        brought = Brought(task, attempt.step, attempt.attempt, nanoseconds(ended.ended_at))
        if ended.duration_ms is not None:
            _remember(self._results, key, brought)
        return self._of_step("step_claim", key, brought, claimed, "in_progress") if claimed else None

    def answered(self, request: RequestAnswered) -> bytes | None:
        """Return the span of a request in a sampled trace; None without one, because a span alone would have no use."""
        if request.traceparent is None or not (caller := caller_of(request.traceparent)).sampled:
            return None
        end = nanoseconds(request.answered_at)
        times = (end - round(request.duration_ms * 1_000_000), end)
        shape = self._request_shape(request.method, request.endpoint, request.status)
        place = self._place.encoded(caller.trace_id, state_of(request.tracestate), ())
        return place + shape.encoded(os.urandom(8), caller.span_id, times, is_remote=True)

    def _of_step(self, name: str, key: Key, brought: Brought, times: Times, state: str) -> bytes:
        task, (step, token), (start, end) = brought.task, key, times
        attributes = (("step_name", brought.step), ("attempt", brought.attempt), ("state", state))
        place = (part_span(name, step, token), task.identity.span_id, (start, max(start, end)))
        return task.common + self._step.encoded(b"", "", [step]) + self._shape(name, attributes).encoded(*place)


def _remember(known: OrderedDict[Key, T], key: Key, value: T) -> None:
    known[key] = value
    if len(known) > REMEMBERED_CLAIMS:
        known.popitem(last=False)


def _of_request(method: str, endpoint: str, status: int) -> Shape:
    route = [("http.route", endpoint)] if endpoint else []
    why = f"answered with {status}" if status >= 500 else ""
    return Shape(
        f"{method} {endpoint}".rstrip(),
        [("http.method", method), *route, ("http.status_code", status)],
        why,
        serves=True,
    )
