"""A circuit breaker around a backend: while the provider keeps failing, sending and receiving fail at once.

Acknowledging, giving back and extending pass by it: their failure is safe, the message comes again. So do the health
check and subscriptions, which see the recovery and then let a trial pass at once, and everything about queues (A-65,
B-20). A backend whose messages are part of the engine's own transactions is not wrapped: a breaker there would refuse
changes of tasks.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import TypeVar

from tasker.contracts.clock import Clock
from tasker.contracts.messaging import Available, Backend, QueuedMessage
from tasker.contracts.plan import BreakerPolicy
from tasker.errors import CircuitBreakerOpen, MessagingError
from tasker.lifecycle.breaker import Breaker, BreakerState
from tasker.messaging.forwarding import ForwardingBackend

T = TypeVar("T")
_log = logging.getLogger("tasker.messaging")


class GuardedBackend(ForwardingBackend):
    """The backend with a `breaker` to look at and to force. While it is open calls raise `CircuitBreakerOpen`."""

    def __init__(self, backend: Backend, clock: Clock, policy: BreakerPolicy | None = None) -> None:
        super().__init__(backend)
        self.breaker = Breaker("messaging", policy)
        self._clock = clock

    async def health_check(self) -> bool:
        """True when the provider answers, whatever the breaker's state."""
        answers = await self._backend.health_check()
        if answers:
            self.breaker.encouraged(self._clock.monotonic())
        return answers

    async def subscribe_many(self, queues: Sequence[str]) -> AsyncGenerator[Available | QueuedMessage, None]:
        """Notifications for these queues, whatever the breaker's state."""
        async with aclosing(self._backend.subscribe_many(queues)) as notifications:
            async for notification in notifications:
                self.breaker.encouraged(self._clock.monotonic())
                yield notification

    async def send_message(self, queue: str, payload: bytes) -> int:
        """Send, unless the breaker is open."""
        return await self._guarded(lambda: self._backend.send_message(queue, payload))

    async def send_messages(self, queue: str, payloads: Sequence[bytes]) -> list[int]:
        """Send many, unless the breaker is open."""
        return await self._guarded(lambda: self._backend.send_messages(queue, payloads))

    async def send_message_with_delay(self, queue: str, payload: bytes, delay_seconds: float) -> int:
        """Send for later, unless the breaker is open."""
        return await self._guarded(lambda: self._backend.send_message_with_delay(queue, payload, delay_seconds))

    async def receive_messages(self, queue: str, limit: int, visibility_timeout: float) -> list[QueuedMessage]:
        """Receive, unless the breaker is open."""
        return await self._guarded(lambda: self._backend.receive_messages(queue, limit, visibility_timeout))

    async def receive_message(self, queue: str, message_id: int, visibility_timeout: float) -> QueuedMessage | None:
        """Receive one, unless the breaker is open."""
        return await self._guarded(lambda: self._backend.receive_message(queue, message_id, visibility_timeout))

    async def _guarded(self, call: Callable[[], Awaitable[T]]) -> T:
        before = self._ask()
        try:
            answer = await call()
        except MessagingError as error:
            self._failed(before, error)
            raise
        except BaseException:  # cancelled: it says nothing about the provider
            self.breaker.abandoned()
            raise
        self.breaker.succeeded(self._clock.monotonic())
        self._tell(before)
        return answer

    def _ask(self) -> BreakerState:
        now = self._clock.monotonic()
        before = self.breaker.state(now)
        if not self.breaker.allow(now):
            wait = self.breaker.retry_after(now)
            raise CircuitBreakerOpen(
                f"the {self.provider_name()} backend keeps failing: no further attempt for {wait:.1f} s",
                retry_after=wait,
                hint="it is tried again by itself; see whether the provider runs and can be reached",
            )
        return before

    def _failed(self, before: BreakerState, error: MessagingError) -> None:
        """What would fail every time (a bad name) is the caller's mistake and no sign of a sick provider."""
        if not error.retryable:
            self.breaker.abandoned()
            return
        self.breaker.failed(self._clock.monotonic())
        self._tell(before)

    def _tell(self, before: BreakerState) -> None:
        after = self.breaker.state(self._clock.monotonic())
        if after is not before:
            level = logging.WARNING if after is BreakerState.OPEN else logging.INFO
            _log.log(level, "circuit_breaker name=messaging backend=%s state=%s", self.provider_name(), after)
