"""Mocks: outcomes of a step's attempts in a simulated run, in place of its handler."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tasker.dataclasses import dataclass
from tasker.errors import UsageError
from tasker.handlers.claims import Failure
from tasker.handlers.context import StepContext
from tasker.handlers.outcome_forms import BATCH_KEY, DECISION_KEY, WIRE, BatchType, DecisionType
from tasker.template.durations import EXPECTED, parse_duration
from tasker.template.plan import Plan, StepPlan

Seconds = float | str
"""A number of seconds, or a duration such as `2s` or `1h30m`."""


@dataclass(frozen=True, slots=True)
class MockedVote:
    """Vote of a person about an approval."""

    approved: bool
    by: str
    form: Mapping[str, Any]
    comment: str


@dataclass(frozen=True, slots=True)
class MockedCall:
    """Outcome of one call of a handler: its result, or the one other field before `takes_ms` that is set."""

    result: Any = None
    failure: Failure | None = None
    route: tuple[str, ...] | None = None
    """Branches of a decision."""
    batches: int | None = None
    """Number of batches of a batchable step."""
    again_ms: int | None = None
    """The handler asks to be called again after that time."""
    lost: bool = False
    """The worker dies during the call."""
    items: tuple[MockedCall, ...] = ()
    """Calls for the items of a step with `for_each`; the last one stands for all further items."""
    event: Any = None
    """Payload of an event for which the step waits; it comes `takes_ms` after the one before."""
    vote: MockedVote | None = None
    """Vote of a person about the step; it comes `takes_ms` after the one before."""
    takes_ms: int = 0

    def of_item(self, number: int) -> MockedCall:
        """Return the call for item `number` of a step with `for_each`, from 0."""
        return self.items[min(number, len(self.items) - 1)] if self.items else self

    def result_for(self, plan: Plan, step: StepPlan) -> Any:
        """Return the result of the call as the step's handler would return it."""
        if self.route is not None:
            return decision(self.route)
        return batches(plan, step, self.batches) if self.batches is not None else self.result


@dataclass(frozen=True, slots=True)
class Mock:
    """Calls of a step's handler, in order; the last one stands for all further ones."""

    calls: tuple[MockedCall, ...]

    @property
    def is_event(self) -> bool:
        """True if it says which events come, and the step's handler, if any, is called."""
        return all(call.event is not None for call in self.calls)

    def then(self, following: Any) -> Mock:
        """Return a mock whose further calls come to `following`: a mock, or a result."""
        return Mock((*self.calls, *mock_of(following).calls))

    def takes(self, time: Seconds) -> Mock:
        """Return a mock whose last call takes that time."""
        *before, last = self.calls
        return Mock((*before, replace(last, takes_ms=milliseconds(time))))

    def call(self, number: int) -> MockedCall:
        """Return what call `number` comes to, from 1."""
        return self.calls[min(number, len(self.calls)) - 1]


FakeHandler = Callable[[StepContext], Any]
Mocks = Mapping[str, Any]
"""Mocks by step: a `Mock`, a result, or a function that is called with the step's context as a handler is."""


def result(value: Any = None, *, takes: Seconds = 0) -> Mock:
    """Return a mock whose calls return this result."""
    return Mock((MockedCall({} if value is None else value, takes_ms=milliseconds(takes)),))


def fails(
    error_type: str = "mocked_failure",
    *,
    times: int = 1_000_000,
    retryable: bool = True,
    message: str | None = None,
    code: str | None = None,
    retry_after: Seconds | None = None,
    raises: str | None = None,
    takes: Seconds = 0,
) -> Mock:
    """Return a mock whose first `times` calls fail; say with `.then` what follows.

    Args:
        error_type: Type of the failure, such as `timeout`.
        times: Number of calls that fail.
        retryable: False for a permanent failure.
        message: Text of the failure.
        code: Error code, which rules of retries may name.
        retry_after: Delay before the next attempt that the failure itself requests.
        raises: Class of the exception, HTTP status or `sqlstate:CODE`, which rules of retries may name.
        takes: Time of each call.
    """
    if times < 1:
        raise UsageError(f"a mock fails at least once, got times={times}")
    after = None if retry_after is None else milliseconds(retry_after) / 1000
    failure = Failure(message or f"mocked {error_type}", error_type, retryable, error_code=code, retry_after=after)
    failure = replace(failure, **_named(raises))
    return Mock((MockedCall(failure=failure, takes_ms=milliseconds(takes)),) * min(times, 10_000))


def _named(raises: str | None) -> dict[str, Any]:
    """Return the fields of a failure to which rules of retries compare their names."""
    if raises is None:
        return {}
    if raises.isdecimal():
        return {"http_status": int(raises)}
    return {"sqlstate": raises[9:]} if raises.startswith("sqlstate:") else {"names": (raises,)}


def of_items(*items: Any, takes: Seconds = 0) -> Mock:
    """Return a mock of a step with `for_each`: a result or a mock for each item, the last one for all further items."""
    calls = tuple(mock_of(item).calls[0] for item in items)
    return Mock((MockedCall(items=calls, takes_ms=milliseconds(takes)),))


def route(*branches: str, takes: Seconds = 0) -> Mock:
    """Return a mock of a decision that takes these branches; none of them: no branch."""
    return Mock((MockedCall(route=branches, takes_ms=milliseconds(takes)),))


def batched(count: int, *, takes: Seconds = 0) -> Mock:
    """Return a mock of a batchable step that cuts its work into that many batches."""
    return Mock((MockedCall(batches=count, takes_ms=milliseconds(takes)),))


def again_in(time: Seconds, *, takes: Seconds = 0) -> Mock:
    """Return a mock of a handler that asks once to be called again; say with `.then` what follows."""
    return Mock((MockedCall(again_ms=milliseconds(time), takes_ms=milliseconds(takes)),))


def lost(times: int = 1, *, takes: Seconds = 0) -> Mock:
    """Return a mock whose worker dies during the first `times` calls; say with `.then` what follows."""
    return Mock((MockedCall(lost=True, takes_ms=milliseconds(takes)),) * times)


def event(payload: Any = None, *, after: Seconds = 0) -> Mock:
    """Return a mock of the event for which a step waits; say with `.then` which further ones come.

    Of a step with a handler that waits (`again_when`), the handler itself is called, and gets the event.
    """
    return Mock((MockedCall(event={} if payload is None else payload, takes_ms=milliseconds(after)),))


def no_event() -> Mock:
    """Return a mock of an event that never comes."""
    return Mock(())


def decided(
    approved: bool = True,
    *,
    by: str = "somebody",
    form: Mapping[str, Any] | None = None,
    comment: str = "",
    after: Seconds = 0,
) -> Mock:
    """Return a mock of the vote of a person about an approval; say with `.then` which further ones come.

    Raises `UsageError` for a value of another type.
    """
    if approved not in (True, False):
        raise UsageError(f"mock.decided: `approved` is True or False, got {approved!r:.40}")
    texts: dict[str, Any] = {"by": by, "comment": comment}
    for name, text in texts.items():
        if not isinstance(text, str) or (name == "by" and not text):
            raise UsageError(f"mock.decided: expected a text as `{name}`, got {text!r:.40}")
    if form is not None and not isinstance(form, Mapping):
        raise UsageError(f"mock.decided: expected the values of the form by name as `form`, got {form!r:.40}")
    return Mock((MockedCall(vote=MockedVote(approved, by, form or {}, comment), takes_ms=milliseconds(after)),))


def no_decision() -> Mock:
    """Return a mock of an approval that nobody decides."""
    return Mock(())


def mock_of(value: Any) -> Mock:
    """Return a mock itself, and a mock that returns any other value as its result."""
    return value if isinstance(value, Mock) else result(value)


def decision(branches: Sequence[str]) -> dict[str, Any]:
    """Return the result of a decision that takes these branches."""
    if not branches:
        return {DECISION_KEY: {WIRE.type_key: DecisionType.NO_BRANCHES.value}}
    return {DECISION_KEY: {WIRE.type_key: DecisionType.CREATE_STEPS.value, WIRE.names_key: list(branches)}}


def batches(plan: Plan, step: StepPlan, count: int) -> dict[str, Any]:
    """Return the result of a batchable step that creates `count` batches of one item."""
    if count == 0:
        return {BATCH_KEY: {"type": BatchType.NO_BATCHES.value}}
    pattern = next(name for name in plan.dependents[step.name] if plan.by_name[name].type.is_pattern)
    cursors = [
        {"batch_id": f"{n + 1:03}", "start_cursor": n, "end_cursor": n + 1, "batch_size": 1} for n in range(count)
    ]
    outcome = {"type": BatchType.CREATE_BATCHES.value, "worker_template_name": pattern, "worker_count": count}
    return {BATCH_KEY: outcome | {"cursor_configs": cursors, "total_items": count}}


def milliseconds(time: Seconds) -> int:
    """Return a time in milliseconds. Raises `UsageError`."""
    try:
        seconds = parse_duration(time) if isinstance(time, str) else float(time)
    except (ValueError, TypeError):
        raise UsageError(f"expected a number of seconds or {EXPECTED}, found {time!r:.100}") from None
    if not 0 <= seconds < 1e9:
        raise UsageError(f"expected a time of at most 1e9 seconds, and not below 0, found {time!r}")
    return round(seconds * 1000)
