"""Several processes on one queue."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tasker.contracts.messaging import Backend, QueuedMessage
from tasker.testing.messaging.suite import HIDDEN, QUEUE, RECOVERY, Suite, numbered, stats_at_depth


class Rivals(Suite):
    """Two processes share a queue; one continues after the other has died."""

    async def test_two_processes_share_the_messages_and_get_none_twice(self, backend: Backend) -> None:
        await backend.create_queue(QUEUE)
        rival = await self.another(backend)
        ids = await backend.send_messages(QUEUE, [numbered(n) for n in range(200)])
        ours: list[QueuedMessage] = []
        theirs: list[QueuedMessage] = []
        try:
            await asyncio.gather(
                _settle_until(lambda: len(ours) + len(theirs) >= len(ids), backend, ours),
                _settle_until(lambda: len(ours) + len(theirs) >= len(ids), rival, theirs),
            )
        finally:
            await rival.close()
        assert sorted(message.message_id for message in ours + theirs) == sorted(ids)
        assert ours
        assert theirs

    async def test_what_a_dead_process_held_comes_to_another_and_what_it_settled_does_not(
        self, backend: Backend
    ) -> None:
        await backend.create_queue(QUEUE)
        ids = await backend.send_messages(QUEUE, [numbered(n) for n in range(10)])
        rival = await self.another(backend)
        held = await rival.receive_messages(QUEUE, 6, HIDDEN)
        settled = [message.message_id for message in held[:2]]
        assert await rival.ack_messages(QUEUE, settled) == [True, True]
        await rival.close()
        await self.advance(backend, HIDDEN + 5)
        received: list[QueuedMessage] = []
        await _settle_until(lambda: len(received) >= len(ids) - len(settled), backend, received)
        reads = {message.message_id: message.read_count for message in received}
        assert len(received) == len(reads)
        again = {message.message_id: 2 for message in held[2:]}
        assert reads == {message_id: again.get(message_id, 1) for message_id in ids if message_id not in settled}
        assert (await stats_at_depth(backend, 0)).depth == 0

    async def test_a_process_that_makes_sure_of_a_queue_leaves_alone_what_others_hold_and_gave_back(
        self, backend: Backend
    ) -> None:
        await backend.create_queue(QUEUE)
        done, held, back, new = await backend.send_messages(QUEUE, [numbered(n) for n in range(4)])
        for message_id in (done, held, back):
            assert [message.message_id for message in await backend.receive_messages(QUEUE, 1, HIDDEN)] == [message_id]
        assert await backend.ack_message(QUEUE, done) is True
        assert await backend.nack_message(QUEUE, back) is True

        rival = await self.another(backend)
        await rival.create_queue(QUEUE)
        await rival.close()

        assert (await stats_at_depth(backend, 3)).depth == 3
        assert await backend.nack_message(QUEUE, held) is True
        received: list[QueuedMessage] = []
        await _settle_until(lambda: len(received) >= 3, backend, received)
        reads = {message.message_id: message.read_count for message in received}
        assert reads == {held: 2, back: 2, new: 1}
        assert (await stats_at_depth(backend, 0)).depth == 0


async def _settle_until(enough: Callable[[], bool], backend: Backend, received: list[QueuedMessage]) -> None:
    """Receive and acknowledge a few messages at a time, and add them to `received`."""
    async with asyncio.timeout(RECOVERY):
        while not enough():
            for message in await backend.receive_messages(QUEUE, 5, HIDDEN):
                assert await backend.ack_message(QUEUE, message.message_id) is True
                received.append(message)
            await asyncio.sleep(0)
