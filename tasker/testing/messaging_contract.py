"""Conformance suite of messaging backends.

Subclass it in a test file, give it an open backend and a way to move its time, and run pytest:

    class TestMine(MessagingContract):
        @pytest_asyncio.fixture
        async def backend(self):
            backend = create({...})
            await backend.open()
            yield backend
            await backend.close()

        async def advance(self, backend, seconds):
            ...

        async def another(self, backend):  # the backend of a second process
            ...

        async def restart(self, backend):  # only for a backend with a server
            ...
"""

from __future__ import annotations

from tasker.testing.messaging.receipts import Receipts
from tasker.testing.messaging.restarts import Push, Restarts, Rivals
from tasker.testing.messaging.sending import QueueContract, Sending


class MessagingContract(QueueContract, Sending, Receipts, Rivals, Push, Restarts):
    """Behaviour common to all backends. Claimed capabilities are tested; tests of others are skipped.

    The subclass provides a fixture `backend`, an open backend without queues, and `advance`; with `another` and
    `restart` it also tests two processes and a killed server. Without them those tests are skipped with a warning.
    """
