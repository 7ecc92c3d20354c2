"""Circuit breaker around a backend: while the provider keeps failing, sending and receiving fail immediately.

Acknowledging, releasing and extending bypass it: if they fail, the message is delivered again. The health check and
subscriptions bypass it too; they notice the recovery and then permit a trial call at once. So do all operations on
queues. A backend whose messages are part of the engine's own transactions is not wrapped: its breaker would refuse
changes of tasks.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import TypeVar

from tasker.contracts.messaging import Backend, MessageAvailable, QueuedMessage
from tasker.errors import BackendUnavailable, CircuitBreakerOpen, MessagingError
from tasker.messaging.forwarding import ForwardingBackend
from tasker.resilience.guard import GuardedCircuit
from tasker.resilience.outage import Outage

T = TypeVar("T")
_log = logging.getLogger("tasker.messaging")


class GuardedBackend(ForwardingBackend):
    """Backend behind a `breaker` that can be read and forced. While it is open, calls raise `CircuitBreakerOpen`."""

    def __init__(self, backend: Backend, breaker: GuardedCircuit) -> None:
        super().__init__(backend)
        self.breaker = breaker
        self._asked_for: set[str] = set()
        self.outage = Outage("broker_unreachable", "broker_reconnected", _log)

    async def create_queue(self, queue: str) -> None:
        """Create a queue; the first call ignores the state of the breaker.

        Later calls are guarded, because sending and receiving begin with them after an error: otherwise these would
        never reach the guarded call and never count.
        """
        if queue in self._asked_for:
            await self._guarded(lambda: self._backend.create_queue(queue))
            return
        self._asked_for.add(queue)
        await self._backend.create_queue(queue)

    async def health_check(self) -> bool:
        """Return True if the provider answers; ignores the state of the breaker."""
        answers = await self._backend.health_check()
        if answers:
            self.outage.answered()
            self.breaker.encouraged()
        return answers

    async def subscribe_many(self, queues: Sequence[str]) -> AsyncGenerator[MessageAvailable | QueuedMessage, None]:
        """Yield notifications for these queues; ignores the state of the breaker."""
        async with aclosing(self._backend.subscribe_many(queues)) as notifications:
            async for notification in notifications:
                self.breaker.encouraged()
                yield notification

    async def send_message(self, queue: str, payload: bytes) -> int:
        return await self._guarded(lambda: self._backend.send_message(queue, payload))

    async def send_messages(self, queue: str, payloads: Sequence[bytes]) -> list[int]:
        return await self._guarded(lambda: self._backend.send_messages(queue, payloads))

    async def send_message_with_delay(self, queue: str, payload: bytes, delay_seconds: float) -> int:
        return await self._guarded(lambda: self._backend.send_message_with_delay(queue, payload, delay_seconds))

    async def receive_messages(self, queue: str, limit: int, visibility_timeout: float) -> list[QueuedMessage]:
        return await self._guarded(lambda: self._backend.receive_messages(queue, limit, visibility_timeout))

    async def receive_message(self, queue: str, message_id: int, visibility_timeout: float) -> QueuedMessage | None:
        return await self._guarded(lambda: self._backend.receive_message(queue, message_id, visibility_timeout))

    async def _guarded(self, call: Callable[[], Awaitable[T]]) -> T:
        return await self.breaker.call(lambda: self._watched(call), self._refusal, _is_outage)

    async def _watched(self, call: Callable[[], Awaitable[T]]) -> T:
        began = self.outage.now()
        try:
            answer = await call()
        except BackendUnavailable as error:
            self.outage.failed(error, began)
            raise
        self.outage.answered()
        return answer

    def _refusal(self, seconds: float) -> CircuitBreakerOpen:
        return CircuitBreakerOpen(
            f"the {self.provider_name()} backend keeps failing: no further attempt for {seconds:.1f} s",
            retry_after=seconds,
            hint="it is tried again by itself; see whether the provider runs and can be reached",
        )


def _is_outage(error: Exception) -> bool:
    """Return True for a failure of the provider; one that repeats every time (a bad name) is the caller's mistake."""
    return isinstance(error, MessagingError) and error.retryable
