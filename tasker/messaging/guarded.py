"""Circuit breaker around a backend.

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

from tasker.errors import BackendUnavailable, CircuitBreakerOpen, MessagingError
from tasker.messaging.port import Backend, MessageAvailable, QueuedMessage, QueueStats
from tasker.resilience.breaker import GuardedCircuit
from tasker.resilience.outage import Outage


class ForwardingBackend:
    """Backend that forwards every call to another one; subclasses override the calls they change."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.capabilities = backend.capabilities

    def provider_name(self) -> str:
        return self._backend.provider_name()

    async def open(self) -> None:
        await self._backend.open()

    async def close(self) -> None:
        await self._backend.close()

    async def health_check(self) -> bool:
        return await self._backend.health_check()

    async def create_queue(self, queue: str) -> None:
        await self._backend.create_queue(queue)

    async def delete_queue(self, queue: str) -> None:
        await self._backend.delete_queue(queue)

    async def queue_exists(self, queue: str) -> bool:
        return await self._backend.queue_exists(queue)

    async def list_queues(self) -> list[str]:
        return await self._backend.list_queues()

    async def send_message(self, queue: str, payload: bytes) -> int:
        return await self._backend.send_message(queue, payload)

    async def send_messages(self, queue: str, payloads: Sequence[bytes]) -> list[int]:
        return await self._backend.send_messages(queue, payloads)

    async def send_message_with_delay(self, queue: str, payload: bytes, delay_seconds: float) -> int:
        return await self._backend.send_message_with_delay(queue, payload, delay_seconds)

    async def receive_messages(self, queue: str, limit: int, visibility_timeout: float) -> list[QueuedMessage]:
        return await self._backend.receive_messages(queue, limit, visibility_timeout)

    async def receive_message(self, queue: str, message_id: int, visibility_timeout: float) -> QueuedMessage | None:
        return await self._backend.receive_message(queue, message_id, visibility_timeout)

    async def ack_message(self, queue: str, message_id: int) -> bool:
        return await self._backend.ack_message(queue, message_id)

    async def ack_messages(self, queue: str, message_ids: Sequence[int]) -> list[bool]:
        return await self._backend.ack_messages(queue, message_ids)

    async def nack_message(self, queue: str, message_id: int, delay_seconds: float = 0.0) -> bool:
        return await self._backend.nack_message(queue, message_id, delay_seconds)

    async def extend_visibility(self, queue: str, message_id: int, seconds: float) -> bool:
        return await self._backend.extend_visibility(queue, message_id, seconds)

    async def queue_stats(self, queue: str) -> QueueStats:
        return await self._backend.queue_stats(queue)

    def subscribe_many(self, queues: Sequence[str]) -> AsyncGenerator[MessageAvailable | QueuedMessage, None]:
        return self._backend.subscribe_many(queues)


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
            hint="Tasker tries again automatically; check that the provider runs and can be reached",
        )


def _is_outage(error: Exception) -> bool:
    """Return True for a failure of the provider; one that repeats every time (a bad name) is the caller's mistake."""
    return isinstance(error, MessagingError) and error.retryable
