"""Messages that were taken and not dealt with: one that ends each process which takes it does so a few times and no
more, and takes no other message with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from tasker.contracts.messaging import QueuedMessage
from tasker.errors import DatabaseError, MessagingError
from tasker.services.engine.calls import Engine

MOST_RECEPTIONS = 5
"""A message that came so often and was never dealt with has ended, or stopped, each process that took it."""
GIVE_BACK_SECONDS = 1.0
"""How long a process that stops takes to give back what it has in hand."""


class PoisonGuard:
    """Takes the messages of one queue by `receive(limit, hidden_seconds)`; gives back what could not be dealt with.

    `rows_tell`: a sweep finds what a lost message was about.
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
        """Up to `limit` messages; one alone where the last process may have ended over one of them.

        What lies behind such a message is not received with it: it would be counted for what that one does.
        """
        messages = await self._received(1 if self._one_at_a_time else limit)
        if self._one_at_a_time and messages and not came_before(messages[0]) and limit > 1:
            messages += await self._received(limit - 1)
        self._one_at_a_time = any(map(came_before, messages)) if messages else self._one_at_a_time
        return messages

    async def _received(self, limit: int) -> list[QueuedMessage]:
        return await self._receive(limit, self._engine.rules.hidden_seconds)

    @asynccontextmanager
    async def returned(self, left: Callable[[], Sequence[QueuedMessage]]) -> AsyncGenerator[None, None]:
        """What is `left` stays hidden from others meanwhile, however long that takes. When the database or the provider
        fails within, or the process stops, it comes again at once."""
        try:
            async with self._kept_hidden(left):
                yield
        except (DatabaseError, MessagingError):
            with suppress(MessagingError):  # they come again later then
                await self.give_back(left())
            raise
        except asyncio.CancelledError:
            await _to_its_end(self._give_back_soon(left()))
            raise

    @asynccontextmanager
    async def _kept_hidden(self, left: Callable[[], Sequence[QueuedMessage]]) -> AsyncGenerator[None, None]:
        """Whom the database holds up would else do everything beside another process that takes the messages, too."""
        over = asyncio.Event()
        keeping = asyncio.create_task(self._keep_hidden(left, over))
        try:
            yield
        finally:  # what is given back must not be hidden behind that
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
        with suppress(MessagingError, TimeoutError):  # they come again later then, and who is told to stop stops
            async with asyncio.timeout(GIVE_BACK_SECONDS):
                await self.give_back(messages)

    async def give_back(self, messages: Sequence[QueuedMessage], delay_seconds: float = 0.0) -> None:
        """Let them come again. It is not their fault: as new messages, at the end, where the next reception would be
        the last; a crash in between leaves both.

        Raises `MessagingError` when that fails for some of them: they come again when their time is over.
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
    """Do this, also when the running task is told to stop once more meanwhile, as a process that stops does."""
    doing = asyncio.create_task(work)
    while not doing.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait([doing])
    doing.result()


async def _within(seconds: float, event: asyncio.Event) -> bool:
    """Whether that happens in so many seconds."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()


def came_before(message: QueuedMessage) -> bool:
    """Whoever took it did not deal with it: perhaps it was what ended that process."""
    return message.read_count > 1


def exceeds_redeliveries(message: QueuedMessage) -> bool:
    """It is not to be tried again."""
    return message.read_count > MOST_RECEPTIONS


def split_suspects(messages: Sequence[QueuedMessage]) -> list[list[QueuedMessage]]:
    """Those that came for the first time together, and then each of the others alone."""
    fresh = [message for message in messages if not came_before(message)]
    return [*([fresh] if fresh else []), *([message] for message in messages if came_before(message))]
