"""The base of wrappers around a backend: passes every call on."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

from tasker.contracts.messaging import Backend, MessageAvailable, QueuedMessage, QueueStats


class ForwardingBackend:
    """A backend that is another one. It is never transactional: subclasses change what happens to messages."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.capabilities = backend.capabilities

    def provider_name(self) -> str:
        """The name of the wrapped backend."""
        return self._backend.provider_name()

    async def open(self) -> None:
        """Connect."""
        await self._backend.open()

    async def close(self) -> None:
        """Release connections."""
        await self._backend.close()

    async def health_check(self) -> bool:
        """True when the provider answers."""
        return await self._backend.health_check()

    async def create_queue(self, queue: str) -> None:
        """Make the queue."""
        await self._backend.create_queue(queue)

    async def delete_queue(self, queue: str) -> None:
        """Remove the queue."""
        await self._backend.delete_queue(queue)

    async def queue_exists(self, queue: str) -> bool:
        """True when the queue exists."""
        return await self._backend.queue_exists(queue)

    async def list_queues(self) -> list[str]:
        """Names of all queues."""
        return await self._backend.list_queues()

    async def send_message(self, queue: str, payload: bytes) -> int:
        """Send."""
        return await self._backend.send_message(queue, payload)

    async def send_messages(self, queue: str, payloads: Sequence[bytes]) -> list[int]:
        """Send many."""
        return await self._backend.send_messages(queue, payloads)

    async def send_message_with_delay(self, queue: str, payload: bytes, delay_seconds: float) -> int:
        """Send a message that becomes visible after the delay."""
        return await self._backend.send_message_with_delay(queue, payload, delay_seconds)

    async def receive_messages(self, queue: str, limit: int, visibility_timeout: float) -> list[QueuedMessage]:
        """Up to `limit` visible messages."""
        return await self._backend.receive_messages(queue, limit, visibility_timeout)

    async def receive_message(self, queue: str, message_id: int, visibility_timeout: float) -> QueuedMessage | None:
        """The message of that id."""
        return await self._backend.receive_message(queue, message_id, visibility_timeout)

    async def ack_message(self, queue: str, message_id: int) -> bool:
        """Done with it."""
        return await self._backend.ack_message(queue, message_id)

    async def ack_messages(self, queue: str, message_ids: Sequence[int]) -> list[bool]:
        """Done with all of them."""
        return await self._backend.ack_messages(queue, message_ids)

    async def nack_message(self, queue: str, message_id: int, delay_seconds: float = 0.0) -> bool:
        """Give it back."""
        return await self._backend.nack_message(queue, message_id, delay_seconds)

    async def extend_visibility(self, queue: str, message_id: int, seconds: float) -> bool:
        """Keep it hidden for longer."""
        return await self._backend.extend_visibility(queue, message_id, seconds)

    async def queue_stats(self, queue: str) -> QueueStats:
        """Depth and age."""
        return await self._backend.queue_stats(queue)

    def subscribe_many(self, queues: Sequence[str]) -> AsyncGenerator[MessageAvailable | QueuedMessage, None]:
        """Notifications for these queues."""
        return self._backend.subscribe_many(queues)
