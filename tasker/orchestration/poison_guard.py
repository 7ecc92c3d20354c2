"""Protection against messages that crash their consumers: such a message is redelivered a few times only, and alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from tasker.engine.calls import Engine
from tasker.errors import DatabaseError, MessagingError
from tasker.messaging.port import QueuedMessage

MOST_RECEPTIONS = 5
"""Number of deliveries after which an unprocessed message is taken to have crashed or blocked every consumer."""
GIVE_BACK_SECONDS = 1.0
"""Time that a stopping process spends on giving back its messages."""


class PoisonGuard:
    """Guarded receiver of one queue by `receive(limit, hidden_seconds)`; returns messages that were not processed.

    `rows_tell` means that a sweep finds the subject of a lost message.
    """

    def __init__(
        self,
        engine: Engine,
        receive: Callable[[int, float], Awaitable[list[QueuedMessage]]],
        *,
        rows_tell: bool = False,
    ) -> None:
        self._engine, self._receive, self._rows_tell = engine, receive, rows_tell
        self._one_at_a_time = True

    async def take(self, limit: int) -> list[QueuedMessage]:
        """Take up to `limit` messages, or one alone if it may have crashed its last consumer.

        Messages behind such a message are not received with it: they would be counted as suspects, too.
        """
        messages = await self._received(1 if self._one_at_a_time else limit)
        if self._one_at_a_time and messages and not is_redelivered(messages[0]) and limit > 1:
            messages += await self._received(limit - 1)
        self._one_at_a_time = any(map(is_redelivered, messages)) if messages else self._one_at_a_time
        return messages

    async def _received(self, limit: int) -> list[QueuedMessage]:
        return await self._receive(limit, self._engine.rules.hidden_seconds)

    @asynccontextmanager
    async def returned(self, left: Callable[[], Sequence[QueuedMessage]]) -> AsyncGenerator[None, None]:
        """Hide the messages that are `left` from others inside the context, however long it takes.

        If the database or the broker fails within, or the process stops, they are delivered again at once.
        """
        try:
            async with self._kept_hidden(left):
                yield
        except (DatabaseError, MessagingError):
            with suppress(MessagingError):  # they are delivered again later then
                await self.give_back(left())
            raise
        except asyncio.CancelledError:
            await _to_its_end(self._give_back_soon(left()))
            raise

    @asynccontextmanager
    async def _kept_hidden(self, left: Callable[[], Sequence[QueuedMessage]]) -> AsyncGenerator[None, None]:
        """Extend the visibility timeout: a slow database must not let another process take the messages as well."""
        over = asyncio.Event()
        keeping = asyncio.create_task(self._keep_hidden(left, over))
        try:
            yield
        finally:  # a message that is given back must not be hidden afterwards
            over.set()
            with suppress(TimeoutError):
                async with asyncio.timeout(GIVE_BACK_SECONDS):
                    await keeping

    async def _keep_hidden(self, left: Callable[[], Sequence[QueuedMessage]], over: asyncio.Event) -> None:
        seconds = self._engine.rules.hidden_seconds
        while not await _within(seconds / 3, over):
            for message in left():
                with suppress(MessagingError):
                    await self._engine.messaging.extend_visibility(message.queue, message.message_id, seconds)

    async def _give_back_soon(self, messages: Sequence[QueuedMessage]) -> None:
        # otherwise they are delivered again later; a process that stops must stop
        with suppress(MessagingError, TimeoutError):
            async with asyncio.timeout(GIVE_BACK_SECONDS):
                await self.give_back(messages)

    async def give_back(self, messages: Sequence[QueuedMessage], delay_seconds: float = 0.0) -> None:
        """Deliver the messages again.

        A message whose next delivery would be its last is sent as a new message instead, at the end of the queue, since
        it did not cause the failure. A crash in between leaves both. Raises `MessagingError` when that fails for some
        messages: they are delivered again after their visibility timeout.
        """
        problem: MessagingError | None = None
        for message in messages:
            try:
                await self._give_back(message, delay_seconds)
            except MessagingError as error:
                problem = error
        if problem is not None:
            raise problem

    async def _give_back(self, message: QueuedMessage, delay_seconds: float) -> None:
        messaging = self._engine.messaging
        if message.read_count < MOST_RECEPTIONS:
            await messaging.nack_message(message.queue, message.message_id, delay_seconds)
            return
        try:
            await messaging.backend.send_messages(message.queue, [message.payload])
        except MessagingError:
            if not self._rows_tell:
                raise
        await messaging.ack_messages([message])


async def _to_its_end(work: Coroutine[Any, Any, None]) -> None:
    """Run the work to its end even if the running task is cancelled again, as happens in a process that stops."""
    doing = asyncio.create_task(work)
    while not doing.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait([doing])
    doing.result()


async def _within(seconds: float, event: asyncio.Event) -> bool:
    """Return True when the event is set within these seconds."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()


def is_redelivered(message: QueuedMessage) -> bool:
    """Return True for a redelivered message: it may have crashed its previous consumer."""
    return message.read_count > 1


def exceeds_redeliveries(message: QueuedMessage) -> bool:
    """Return True when the message must not be tried again."""
    return message.read_count > MOST_RECEPTIONS


def split_suspects(messages: Sequence[QueuedMessage]) -> list[list[QueuedMessage]]:
    """Split messages into those delivered for the first time, together, and each of the others alone."""
    fresh = [message for message in messages if not is_redelivered(message)]
    return [*([fresh] if fresh else []), *([message] for message in messages if is_redelivered(message))]
