"""Handlers that stop and are called again: after a time, or with an event."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from tasker.dataclasses import dataclass
from tasker.errors import ValidationError
from tasker.handlers.copies import deep_copy
from tasker.template.durations import duration_seconds
from tasker.template.names import MAX_NAME, NAME

DEFAULT_SNOOZES = 100
MOST_SNOOZES = 10_000
LONGEST_REASON = 500
LONGEST_KEY = 200
NEVER = "never"
Delay = timedelta | float | str
OnTimeout = Literal["fail", "continue"]


@dataclass(frozen=True, slots=True)
class AwaitedEvent:
    """Event for which a handler has waited with `again_when`."""

    name: str
    key: str
    payload: Any
    event_uuid: str
    sent_at: datetime

    @classmethod
    def parse(cls, event: Mapping[str, Any]) -> AwaitedEvent:
        """Parse an event of `tasker.event_result`."""
        sent_at = datetime.fromisoformat(event["sent_at"])
        return cls(event["event"], event["key"], deep_copy(event["payload"]), event["event_uuid"], sent_at)


class AgainIn(BaseException):
    """Exception that a handler raises to be called again after `seconds`, as `CheckpointYield` is raised."""

    def __init__(
        self, seconds: float, reason: str = "", limit: int = DEFAULT_SNOOZES, state: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(seconds, reason, limit, state)
        self.seconds, self.reason, self.limit, self.state = seconds, reason, limit, state

    def __str__(self) -> str:
        return f"again in {self.seconds:g} s"


class AgainWhen(BaseException):
    """Exception that a handler raises to be called again with an event, as `CheckpointYield` is raised.

    `seconds` is None if it waits without a limit.
    """

    def __init__(
        self,
        event: str,
        key: str,
        seconds: float | None,
        on_timeout: OnTimeout = "fail",
        state: Mapping[str, Any] | None = None,
        schema: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(event, key, seconds, on_timeout, state, schema)
        self.event, self.key, self.seconds, self.on_timeout = event, key, seconds, on_timeout
        self.state, self.schema = state, schema

    def __str__(self) -> str:
        return f"again with the event {self.event}" + (f" with the key {self.key}" if self.key else "")


def again_in(
    delay: Delay, *, reason: str = "", limit: int = DEFAULT_SNOOZES, state: Mapping[str, Any] | None = None
) -> NoReturn:
    """Stop here and have the handler called again, from the top, after `delay`.

    For a handler that looks whether something has happened: it is no failure and uses no attempt, and nothing runs
    meanwhile. The step fails if its handler asks more than `limit` times.

    Args:
        delay: Seconds, a timedelta, or text such as `5m`.
        reason: Shown while the step waits.
        limit: How often the handler may ask.
        state: JSON that the next calls read as `context.state`; None keeps what is stored.

    Raises:
        ValidationError: An argument is out of range.
    """
    if type(limit) is not int or not 1 <= limit <= MOST_SNOOZES:
        raise ValidationError(f"limit: expected a whole number from 1 to {MOST_SNOOZES}, got {limit!r}")
    raise AgainIn(_seconds("delay", delay), str(reason)[:LONGEST_REASON], limit, _checked_state(state))


def again_when(
    event: str,
    *,
    key: str | int = "",
    timeout: Delay,
    on_timeout: OnTimeout = "fail",
    state: Mapping[str, Any] | None = None,
    schema: Mapping[str, Any] | None = None,
) -> NoReturn:
    """Stop here and have the handler called again, from the top, with an event (`context.event`).

    The step waits without a worker and uses no attempt, also when the event has arrived before.

    Args:
        event: Name of the event, as in `tasker events send`.
        key: Key of the event; without one, only events without a key count.
        timeout: Seconds, a timedelta, text such as `2h`, or `never`.
        on_timeout: `fail`: the step fails with `wait_timed_out`, and no retry follows. `continue`: the handler is
            called with `context.timed_out`, and `context.event` is None.
        state: JSON that the next calls read as `context.state`; None keeps what is stored.
        schema: JSON Schema of the payload; events with another payload are ignored.

    Raises:
        ValidationError: An argument is not as described.
    """
    if type(event) is not str or not re.fullmatch(NAME, event) or len(event) > MAX_NAME:
        raise ValidationError(f"event: expected a name such as payment.settled, got {event!r:.80}")
    if type(key) not in (str, int) or len(str(key)) > LONGEST_KEY or "\0" in str(key):
        raise ValidationError(f"key: expected text of at most {LONGEST_KEY} characters, got {key!r:.80}")
    if on_timeout not in ("fail", "continue"):
        raise ValidationError(f"on_timeout: expected 'fail' or 'continue', got {on_timeout!r:.80}")
    seconds = None if timeout == NEVER else _seconds("timeout", timeout)
    if seconds == 0:
        raise ValidationError("timeout: expected a duration above 0s, or `never`")
    if schema is not None:
        from tasker.template.schema_check import schema_problems  # needed for waits with a schema only

        if not isinstance(schema, Mapping):
            raise ValidationError(f"schema: expected a JSON Schema, got {schema!r:.80}")
        if problems := list(schema_problems(dict(schema))):
            place = "".join(f".{part}" for part in problems[0].path)
            raise ValidationError(f"schema{place}: not a JSON Schema: {problems[0].message}")
    raise AgainWhen(event, str(key), seconds, on_timeout, _checked_state(state), schema)


def _seconds(name: str, value: Delay) -> float:
    try:
        return duration_seconds(value)
    except ValueError as error:
        raise ValidationError(f"{name}: {error}") from None


def _checked_state(state: Any) -> Mapping[str, Any] | None:
    if state is not None and not isinstance(state, Mapping):
        raise ValidationError(f"state: expected keys and values, got {state!r:.80}")
    return state


class GoingOn:
    """Part of `StepContext` for handlers that stop and are called again."""

    if TYPE_CHECKING:

        @property
        def stored_again(self) -> Mapping[str, Any]:
            """State and event that the database stores for the handler."""
            ...

        @property
        def event(self) -> AwaitedEvent | None:
            """Event for which the handler waited last; None in the first call, and if the wait has timed out."""
            ...

    @property
    def state(self) -> dict[str, Any]:
        """JSON that an earlier call of the handler stored with `again_when` or `again_in`; {} without any.

        Retries and resets of the step read it, too. Each read returns a copy.
        """
        state: dict[str, Any] = deep_copy(self.stored_again.get("state") or {})
        return state

    @property
    def awaited_event(self) -> AwaitedEvent | None:
        """Event for which the handler waited last, as `event`, which contexts of tasker_core use for another value."""
        event = self.stored_again.get("event")
        return None if event is None else AwaitedEvent.parse(event)

    @property
    def timed_out(self) -> bool:
        """True if no event came in time, after `again_when(..., on_timeout="continue")`."""
        return bool(self.stored_again.get("timed_out"))

    again_in = staticmethod(again_in)
    again_when = staticmethod(again_when)
