"""A server that was killed and started again."""

from __future__ import annotations

from contextlib import aclosing, suppress

from tasker.contracts.messaging import Backend, MessageAvailable
from tasker.errors import MessagingError
from tasker.testing.messaging.suite import (
    HIDDEN,
    QUEUE,
    Suite,
    needs,
    numbered,
    one_received,
    received_in_time,
    recovered,
    soon,
)


class Restarts(Suite):
    """A backend outlives its server."""

    async def test_after_a_restart_the_backend_works_by_itself(self, backend: Backend) -> None:
        await backend.create_queue(QUEUE)
        await self.restart(backend)
        await recovered(lambda: backend.create_queue(QUEUE))
        await recovered(lambda: backend.send_message(QUEUE, b'{"n": 1}'))
        messages = await received_in_time(backend, 1)
        assert [message.payload for message in messages] == [b'{"n": 1}']
        assert await backend.ack_message(QUEUE, messages[0].message_id) is True
        assert await backend.health_check() is True

    async def test_after_a_restart_what_was_sent_is_there_in_order(self, backend: Backend) -> None:
        await backend.create_queue(QUEUE)
        ids = await backend.send_messages(QUEUE, [numbered(n) for n in range(50)])
        await self.restart(backend)
        received = await received_in_time(backend, len(ids))
        assert [message.message_id for message in received] == ids

    async def test_after_a_restart_a_receipt_is_honoured_or_refused_and_then_the_message_comes_back(
        self, backend: Backend
    ) -> None:
        message = await one_received(backend)
        await self.restart(backend)
        honoured = await recovered(lambda: backend.ack_message(QUEUE, message.message_id))
        await self.advance(backend, HIDDEN + 5)
        again = await received_in_time(backend, 0 if honoured else 1)
        assert [one.message_id for one in again] == ([] if honoured else [message.message_id])

    async def test_after_a_restart_a_subscriber_is_told_or_may_subscribe_again(self, backend: Backend) -> None:
        needs(backend.capabilities.push, "push")
        await backend.create_queue(QUEUE)
        async with aclosing(backend.subscribe_many([QUEUE])) as notifications:
            await soon(anext(notifications))
            await self.restart(backend)
            await recovered(lambda: backend.create_queue(QUEUE))
            await recovered(lambda: backend.send_message(QUEUE, b'{"n": 1}'))
            with suppress(MessagingError):
                assert (await soon(anext(notifications))).queue == QUEUE
                return
        async with aclosing(backend.subscribe_many([QUEUE])) as notifications:
            assert await soon(anext(notifications)) == MessageAvailable(QUEUE)
