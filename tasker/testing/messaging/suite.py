"""Base of the test classes of a backend, and calls that tests of several subjects share."""

from __future__ import annotations

import asyncio
import json
import warnings
from collections.abc import Awaitable, Callable
from typing import NoReturn, TypeVar

import pytest

from tasker.errors import MessagingError
from tasker.messaging.port import Backend, QueuedMessage, QueueStats

QUEUE = "worker_contract_queue"
OTHER = "worker_contract_other_queue"
HIDDEN = 30.0
"""Visibility timeout of the tests, in seconds; only `advance` lets time pass."""
PATIENCE = 10.0
"""Seconds after which a notification counts as lost; a passing test does not wait for them."""
RECOVERY = 60.0
"""Seconds that a backend may need to recover after its server was killed and started."""

T = TypeVar("T")


@pytest.mark.asyncio
class Suite:
    """Methods that the subclass overrides for its backend.

    The fixture `backend` provides an open backend without queues.
    """

    async def advance(self, backend: Backend, seconds: float) -> None:
        """Let `seconds` pass for the messages of the backend, without waiting. The subclass overrides it."""
        raise NotImplementedError("say how time passes: async def advance(self, backend, seconds)")

    async def another(self, backend: Backend) -> Backend:
        """Return a second open backend, like that of another process on the same server. The suite closes it.

        Its `close` must leave its messages as the death of its process would. Tests that need two processes are skipped
        with a warning unless the subclass overrides this method; it calls `pytest.skip` itself if messages never leave
        the process.
        """
        _unproven(self, "another", "two processes on one queue, and messages of one that died")

    async def restart(self, backend: Backend) -> None:
        """Kill the server as a crash would, start it again with its data, and return when it listens.

        Tests whose names begin with `test_after_a_restart` call it. They are skipped with a warning unless the subclass
        overrides it; it calls `pytest.skip` itself if there is no server.
        """
        _unproven(self, "restart", "a server that was killed and started again")


def _unproven(suite: Suite, method: str, subject: str) -> NoReturn:
    """Skip the test with a warning, which is visible even if reasons of skips are not shown."""
    text = f"NOT TESTED on {type(suite).__name__}: {subject}; override {method}()"
    warnings.warn(text, stacklevel=3)
    pytest.skip(text)


def needs(claimed: bool, capability: str) -> None:
    """Skip the test unless the backend claims the capability."""
    if not claimed:
        pytest.skip(f"the backend does not claim {capability}")


def numbered(n: int) -> bytes:
    return json.dumps({"n": n}).encode()


async def one_received(backend: Backend) -> QueuedMessage:
    """Send and receive one message."""
    await backend.create_queue(QUEUE)
    await backend.send_message(QUEUE, b"{}")
    (message,) = await backend.receive_messages(QUEUE, 1, HIDDEN)
    return message


async def receive(backend: Backend, queue: str = QUEUE) -> list[object]:
    """Receive the available messages as JSON."""
    return [json.loads(message.payload) for message in await backend.receive_messages(queue, 100, HIDDEN)]


async def recovered(call: Callable[[], Awaitable[T]]) -> T:
    """Return the result of the call once the backend has recovered from the loss of its server."""
    async with asyncio.timeout(RECOVERY):
        while True:
            try:
                return await call()
            except MessagingError:
                await asyncio.sleep(0.05)


async def received_in_time(backend: Backend, count: int) -> list[QueuedMessage]:
    """Receive until there are `count` messages; the first answers of a server may be empty."""
    received: list[QueuedMessage] = []
    async with asyncio.timeout(RECOVERY):
        while True:
            received += await recovered(lambda: backend.receive_messages(QUEUE, 100, HIDDEN))
            if len(received) >= count:
                return received
            await asyncio.sleep(0.05)


async def stats_at_depth(backend: Backend, depth: int) -> QueueStats:
    """Return the statistics of the queue once its depth is as expected, or the last ones after `PATIENCE`.

    A broker may count a message that is returning to the queue neither as waiting nor as delivered.
    """
    deadline = asyncio.get_running_loop().time() + PATIENCE
    while (stats := await backend.queue_stats(QUEUE)).depth != depth and asyncio.get_running_loop().time() < deadline:
        await asyncio.sleep(0.05)
    return stats


async def soon(pending: Awaitable[T]) -> T:
    """Await with the time limit `PATIENCE`."""
    return await asyncio.wait_for(pending, PATIENCE)
