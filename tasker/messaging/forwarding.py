"""Base class of wrappers around a backend."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

from tasker.contracts.messaging import Backend, MessageAvailable, QueuedMessage, QueueStats


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
