"""Messages that were taken and not dealt with: one that ends each process which takes it does so a few times and no
more, and takes no other message with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress

from tasker.contracts.messaging import QueuedMessage
from tasker.errors import DatabaseError, MessagingError
from tasker.services.engine.calls import Engine

MOST_RECEPTIONS = 5
"""A message that came so often and was never dealt with has ended, or stopped, each process that took it."""
GIVE_BACK_SECONDS = 1.0
"""How long a process that stops takes to give back what it has in hand."""


class Receptions:
    """Takes the messages of one queue by `receive(limit, hidden_seconds)`; gives back what could not be dealt with."""

    def __init__(self, engine: Engine, receive: Callable[[int, float], Awaitable[list[QueuedMessage]]]) -> None:
        self._engine, self._receive = engine, receive
        self._careful = True

    async def take(self, limit: int) -> list[QueuedMessage]:
        """Up to `limit` messages; one alone where the last process may have ended over one of them.

        What lies behind such a message is not received with it: it would be counted for what that one does.
        """
        messages = await self._received(1 if self._careful else limit)
        if self._careful and messages and not came_before(messages[0]) and limit > 1:
            messages += await self._received(limit - 1)
        self._careful = any(map(came_before, messages)) if messages else self._careful
        return messages

    async def _received(self, limit: int) -> list[QueuedMessage]:
        return await self._receive(limit, self._engine.rules.hidden_seconds)

    @asynccontextmanager
    async def returned(self, left: Callable[[], Sequence[QueuedMessage]]) -> AsyncGenerator[None, None]:
        """What is `left` when the database fails within, or the process stops, comes again at once."""
        try:
            yield
        except DatabaseError:
            await self.give_back(left())
            raise
        except asyncio.CancelledError:
            with suppress(MessagingError, TimeoutError):  # they come again later then, and who is told to stop stops
                async with asyncio.timeout(GIVE_BACK_SECONDS):
                    await self.give_back(left())
            raise

    async def give_back(self, messages: Sequence[QueuedMessage], delay_seconds: float = 0.0) -> None:
        """Let them come again. It is not their fault: as new messages, at the end, where the next reception would be
        the last; a crash in between leaves both."""
        messaging = self._engine.messaging
        for message in messages:
            if message.read_count < MOST_RECEPTIONS:
                await messaging.nack_message(message.queue, message.message_id, delay_seconds)
            else:
                await messaging.backend.send_messages(message.queue, [message.payload])
                await messaging.ack_messages([message])


def came_before(message: QueuedMessage) -> bool:
    """Whoever took it did not deal with it: perhaps it was what ended that process."""
    return message.read_count > 1


def came_too_often(message: QueuedMessage) -> bool:
    """It is not to be tried again."""
    return message.read_count > MOST_RECEPTIONS


def apart(messages: Sequence[QueuedMessage]) -> list[list[QueuedMessage]]:
    """Those that came for the first time together, and then each of the others alone."""
    fresh = [message for message in messages if not came_before(message)]
    return [*([fresh] if fresh else []), *([message] for message in messages if came_before(message))]
