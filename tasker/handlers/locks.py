"""Locks that handlers take by name, with fencing tokens."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator, Mapping
from datetime import timedelta
from itertools import count
from time import monotonic
from types import TracebackType
from typing import Any, Self, TypeAlias

from tasker.errors import DatabaseError, PermanentError, ResourceContentionError, RetryableError, ValidationError
from tasker.handlers.calls import HandlerCalls
from tasker.template.durations import duration_seconds, duration_text

LONGEST_NAME = 200
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0
"""Seconds between two tries to take a lock that another step holds."""

Duration: TypeAlias = timedelta | float | str


class UnsharedLocks:
    """Locks of a handler that no worker runs, as in a test: each is free."""

    def __init__(self) -> None:
        self._tokens = count(1)

    def call(self, action: str, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Answer as the database does for a free lock."""
        return {"token": next(self._tokens)} if action == "take" else {}

    async def acall(self, action: str, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Answer as `call`."""
        return self.call(action, fields)


class HandlerLock:
    """A lock for a `with` block, or for an `async with` block in async handlers.

    It ends with the block, after its `ttl`, or with the claim of its step: when the worker is lost, another step can
    take it. Pass `token` on to systems that can refuse lower numbers than they have seen.
    """

    def __init__(self, calls: HandlerCalls, name: str, ttl: Duration, timeout: Duration) -> None:
        if type(name) is not str or not 1 <= len(name) <= LONGEST_NAME or re.search("[\0\ud800-\udfff]", name):
            raise ValidationError(f"name: expected text of 1 to {LONGEST_NAME} characters, got {name!r:.80}")
        self.name = name
        self._calls, self._ttl, self._timeout = calls, _seconds("ttl", ttl), _seconds("timeout", timeout)
        if self._ttl < 0.001:
            raise ValidationError("ttl: expected a duration of at least 1ms, got 0s")
        self._token: int | None = None
        self._until = 0.0

    @property
    def token(self) -> int:
        """Fencing token: higher than those of all earlier holders of the lock. Raises `PermanentError` outside of the
        block."""
        if self._token is None:
            raise PermanentError(f"the lock {self.name!r} is not held", hint="read the token inside the `with` block")
        return self._token

    @property
    def seconds_left(self) -> float:
        """Seconds until another step may take the lock, 0 after that."""
        return max(0.0, self._until - monotonic())

    def renew(self) -> None:
        """Hold the lock for its `ttl` from now on. Raises `RetryableError` (`lock_lost`) if another step has it."""
        before = monotonic()
        self._renewed(self._calls.call("renew", self._fields(lock=self.token)), before)

    async def arenew(self) -> None:
        """Renew the lock in an async handler; see `renew`."""
        before = monotonic()
        self._renewed(await self._calls.acall("renew", self._fields(lock=self.token)), before)

    def __enter__(self) -> Self:
        for before, pause in self._tries():
            if self._taken(answer := self._calls.call("take", self._fields()), before):
                return self
            time.sleep(self._pause(answer, pause))
        raise AssertionError

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        try:
            answer: Mapping[str, Any] = self._calls.call("release", self._fields(lock=self.token))
        except DatabaseError:
            answer = self._unreleased()
        self._released(answer, error)

    async def __aenter__(self) -> Self:
        for before, pause in self._tries():
            if self._taken(answer := await self._calls.acall("take", self._fields()), before):
                return self
            await asyncio.sleep(self._pause(answer, pause))
        raise AssertionError

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        try:
            answer: Mapping[str, Any] = await self._calls.acall("release", self._fields(lock=self.token))
        except DatabaseError:
            answer = self._unreleased()
        self._released(answer, error)

    def _fields(self, **more: Any) -> dict[str, Any]:
        return {"name": self.name, "ttl_ms": round(self._ttl * 1000), **more}

    def _tries(self) -> Iterator[tuple[float, float]]:
        """Yield the time before each try, and the pause after it."""
        if self._token is not None:
            raise PermanentError(f"the lock {self.name!r} is held already", hint="call `context.lock` for each block")
        self._gives_up, pause = monotonic() + self._timeout, FIRST_PAUSE
        while True:
            yield monotonic(), pause
            pause = min(2 * pause, LONGEST_PAUSE)

    def _taken(self, answer: Mapping[str, Any], before: float) -> bool:
        if answer.get("lost"):
            raise RetryableError(f"the lock {self.name!r} was not taken: this worker lost the step")
        if "token" not in answer:
            return False
        self._token, self._until = answer["token"], before + self._ttl
        return True

    def _pause(self, answer: Mapping[str, Any], pause: float) -> float:
        """Return the seconds until the next try. Raises an error if there is none."""
        held = answer["held"]
        if held["own"]:
            raise PermanentError(f"this step holds the lock {self.name!r} already", error_code="lock_held")
        left = self._gives_up - monotonic()
        if left <= 0:
            holder = f"the step {held['step_name']} of task {held['task']}"
            raise ResourceContentionError(
                f"the lock {self.name!r} was not free within {duration_text(self._timeout)}: {holder} holds it, "
                f"for at most {duration_text(held['left_ms'] / 1000)} unless it renews it",
                error_code="lock_held",
            )
        return float(min(pause, left))

    def _renewed(self, answer: Mapping[str, Any], before: float) -> None:
        if answer.get("lost"):
            raise self._lost()
        self._until = before + self._ttl

    def _unreleased(self) -> dict[str, Any]:
        """Return the answer in place of a failed release: the lock ends with its claim, and was not lost before now."""
        return {} if self.seconds_left > 0 else {"lost": True}

    def _released(self, answer: Mapping[str, Any], error: BaseException | None) -> None:
        self._token = None
        if answer.get("lost") and error is None:
            raise self._lost()

    def _lost(self) -> RetryableError:
        return RetryableError(
            f"the lock {self.name!r} was lost: it was not renewed within {duration_text(self._ttl)}, and another step "
            "may have taken it",
            error_code="lock_lost",
            hint="take it for longer, or renew it during the work",
        )


def _seconds(name: str, value: Duration) -> float:
    try:
        return duration_seconds(value)
    except ValueError as error:
        raise ValidationError(f"{name}: {error}") from None
