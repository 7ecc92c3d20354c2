"""Where a world's messages lie: in lists that a test can rob, or with a real backend behind the messaging service.

Each mailbox shows what it holds in `hints` and `results`. With a backend these lists mirror it: whatever it delivers
must have been sent and not been taken, and what was sent must come.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tasker.db.channel import DatabaseChannel
from tasker.db.connection import Connection
from tasker.messaging import MessagingService, load_backend
from tasker.messaging.messages import POINTED_AT, pointed_at
from tasker.messaging.port import Capabilities, QueuedMessage, QueueStats
from tasker.messaging.queues import QueueNames
from tests.support.model.model import Model
from tests.support.model.parts import Key
from tests.support.servers import brokers

Entry = dict[str, Any]
PATIENCE = 20.0
"""Seconds until a message that was sent must have come."""
LOOK_SECONDS = 0.005
STRANGE = "00000000-0000-7000-9000-00000000ffff"


class Mailbox:
    """Messages in lists, with the methods of `MessagingService` that the engine calls. `sent` are the newest hints."""

    def __init__(self) -> None:
        self.backend: object = object()
        self.names = QueueNames()
        self.capabilities = Capabilities()
        self.hints: list[Entry] = []
        self.results: list[Entry] = []
        self.sent: list[Entry] = []
        self._chosen: list[Entry] = []
        self._taken: dict[tuple[str, int], tuple[list[Entry], list[Entry]]] = {}
        self._numbers = itertools.count(1)

    # --- what a test does --------------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Connect."""

    async def close(self) -> None:
        """Leave nothing behind."""

    async def empty(self, namespaces: Sequence[str]) -> None:
        """No messages, and these namespaces."""
        self.hints, self.results, self._taken = [], [], {}

    def choose(self, messages: Sequence[Entry]) -> None:
        """These are received next, where one can choose."""
        self._chosen = list(messages)

    async def lose(self, hint: Entry) -> None:
        """A message disappears: this one where one can choose, else one of its namespace."""
        self.hints.remove(hint)

    async def repeat(self, hint: Entry, **other: Any) -> None:
        """It is sent again, or one like it."""
        self.hints.append({**hint, **other})

    async def lose_result(self, message: Entry) -> None:
        """A message of the results' queue disappears."""
        self.results.remove(message)

    def missing(self, steps: Sequence[str]) -> list[str] | None:
        """Those of the steps that no hint points to; None where the engine must find out itself."""
        present = {hint["step"] for hint in self.hints}
        return [step for step in steps if step not in present]

    def lost_hints(self, model: Model, names: Mapping[str, Key]) -> int:
        """How many hints a sweep must send again."""
        return len(model.without_hint({names[hint["step"]] for hint in self.hints if hint["step"] in names}))

    async def look(self, connection: Connection) -> None:
        """Take notice of what the engine has sent by itself."""

    async def steady(self) -> None:
        """Return when counts tell the truth."""

    # --- what the engine calls ---------------------------------------------------------------------------------------

    async def send_hints(self, entries: Iterable[Mapping[str, Any]]) -> dict[str, int]:
        hints = [dict(entry) for entry in entries]
        self.hints += _in_order(hints)
        self.sent += hints
        return dict(Counter(hint["namespace"] for hint in hints))

    async def send_step_results(self, results: Iterable[Mapping[str, Any]], together: int = 1) -> list[int]:
        self.results += _in_order(dict(result) for result in results)
        return []

    async def receive_step_messages(self, namespace: str, limit: int, visibility: float) -> list[QueuedMessage]:
        mine = [hint for hint in self._chosen if hint["namespace"] == namespace]
        return [
            self._deliver(self.hints, hint, step_uuid=hint["step"], task_uuid=hint["task"]) for hint in mine[:limit]
        ]

    async def receive_step_results(self, limit: int, visibility: float) -> list[QueuedMessage]:
        taken, self._chosen = self._chosen[:limit], self._chosen[limit:]
        return [self._deliver(self.results, result, **result) for result in taken]

    async def queue_stats(self, queue: str) -> QueueStats:
        assert queue == self.names.step_results
        return QueueStats(queue, len(self.results), None)

    async def ack_messages(self, messages: Sequence[QueuedMessage]) -> None:
        for message in messages:
            del self._taken[message.queue, message.message_id]

    async def nack_message(self, queue: str, message_id: int, delay_seconds: float = 0.0) -> bool:
        place, entries = self._taken.pop((queue, message_id))
        place += entries
        return True

    def _deliver(self, place: list[Entry], entry: Entry, **content: Any) -> QueuedMessage:
        place.remove(entry)
        message = QueuedMessage("list", next(self._numbers), json.dumps(content).encode())
        self._taken[message.queue, message.message_id] = (place, [entry])
        return message


class BackendMailbox(Mailbox):
    """Messages with a real backend. Delays are left out: the world's clock is not the backend's."""

    def __init__(self, url: str, backend: str) -> None:
        super().__init__()
        self._settings = brokers.engine_settings(backend)
        chosen = load_backend(backend, {"channel": DatabaseChannel(url), **self._settings})
        self._messaging, self.backend = MessagingService(chosen), chosen
        self._namespaces: Sequence[str] = ()

    async def open(self) -> None:
        await self._messaging.open()

    async def close(self) -> None:
        await brokers.remove_queues(self._messaging, self._settings)
        await self._messaging.close()

    async def empty(self, namespaces: Sequence[str]) -> None:
        await super().empty(namespaces)
        self._namespaces = namespaces
        for queue in await self._messaging.list_queues():
            await self._messaging.delete_queue(queue)
        await self._messaging.ensure_orchestration_queues()
        for namespace in namespaces:
            await self._messaging.ensure_namespace(namespace)

    async def lose(self, hint: Entry) -> None:
        await self._swallow(lambda: self.receive_step_messages(hint["namespace"], 1, PATIENCE))

    async def lose_result(self, message: Entry) -> None:
        await self._swallow(lambda: self.receive_step_results(1, PATIENCE))

    async def _swallow(self, receive: Any) -> None:
        async with asyncio.timeout(PATIENCE):
            while not (received := await receive()):
                await asyncio.sleep(LOOK_SECONDS)
        await self.ack_messages(received)

    async def repeat(self, hint: Entry, **other: Any) -> None:
        await self.send_hints([{**hint, **other}])

    def missing(self, steps: Sequence[str]) -> list[str] | None:
        return None

    def lost_hints(self, model: Model, names: Mapping[str, Key]) -> int:
        """As many as the queue is too shallow: a message that is there twice hides that another one is lost."""
        late = Counter(step.task.plan.namespace for step in model.without_hint(set()))
        present = Counter(hint["namespace"] for hint in self.hints)
        queued = model.queued()
        return sum(min(number, max(0, queued[name] - present[name])) for name, number in late.items())

    async def steady(self) -> None:
        async with asyncio.timeout(PATIENCE):
            for namespace in self._namespaces:
                while await self._depth(namespace) != sum(hint["namespace"] == namespace for hint in self.hints):
                    await asyncio.sleep(LOOK_SECONDS)

    async def _depth(self, namespace: str) -> int:
        return (await self.queue_stats(await self.ensure_namespace(namespace))).depth

    async def ensure_namespace(self, namespace: str) -> str:
        return await self._messaging.ensure_namespace(namespace)

    async def queue_stats(self, queue: str) -> QueueStats:
        return await self._messaging.queue_stats(queue)

    async def all_stats(self, queues: Sequence[str]) -> dict[str, QueueStats]:
        return await self._messaging.all_stats(queues)

    async def send_hints(self, entries: Iterable[Mapping[str, Any]]) -> dict[str, int]:
        hints = [{key: entry[key] for key in ("namespace", "step", "task")} for entry in entries]
        await self._messaging.send_hints(hints)
        return await super().send_hints(hints)

    async def send_step_results(self, results: Iterable[Mapping[str, Any]], together: int = POINTED_AT) -> list[int]:
        results = list(results)
        await self._messaging.send_step_results(results, together)
        return await super().send_step_results(results)

    async def receive_step_messages(self, namespace: str, limit: int, visibility: float) -> list[QueuedMessage]:
        messages = await self._messaging.receive_step_messages(namespace, limit, visibility)
        for message in messages:
            self._note(message, self.hints, [json.loads(message.payload)["step_uuid"]])
        return messages

    async def receive_step_results(self, limit: int, visibility: float) -> list[QueuedMessage]:
        messages = await self._messaging.receive_step_results(limit, visibility)
        for message in messages:
            self._note(message, self.results, pointed_at(message.payload))
        return messages

    def _note(self, message: QueuedMessage, place: list[Entry], steps: Sequence[str]) -> None:
        taken = list[Entry]()
        for step in steps:
            found = [entry for entry in place if entry["step"] == step]
            assert found, f"{message} was not sent, or was taken before"
            place.remove(found[0])
            taken.append(found[0])
        self._taken[message.queue, message.message_id] = (place, taken)

    async def ack_messages(self, messages: Sequence[QueuedMessage]) -> None:
        await self._messaging.ack_messages(messages)
        await super().ack_messages(messages)

    async def nack_message(self, queue: str, message_id: int, delay_seconds: float = 0.0) -> bool:
        assert await self._messaging.nack_message(queue, message_id, delay_seconds)
        return await super().nack_message(queue, message_id)


class TransactionalMailbox(BackendMailbox):
    """PGMQ: the engine sends and takes hints in its own transactions, so its tables are read after every call."""

    async def look(self, connection: Connection) -> None:
        """Also makes visible at once what was sent with a delay."""
        known = {hint["id"] for hint in self.hints}
        self.hints = []
        for namespace in self._namespaces:
            table = f"pgmq.q_worker_{namespace}_queue"
            ((made,),) = await connection.execute("select to_regclass(%s) is not null", (table,))
            if not made:  # an ordered namespace needs none
                continue
            await connection.execute(f"update {table} set vt = clock_timestamp() where vt > clock_timestamp()")
            rows = await connection.execute(
                f"select msg_id, message->>'step_uuid', message->>'task_uuid' from {table} order by msg_id"
            )
            self.hints += [
                {"id": (namespace, number), "namespace": namespace, "step": step, "task": task}
                for number, step, task in rows
            ]
        self.sent += [hint for hint in self.hints if hint["id"] not in known]

    async def send_hints(self, entries: Iterable[Mapping[str, Any]]) -> dict[str, int]:
        return await self._messaging.send_hints(entries)

    def lost_hints(self, model: Model, names: Mapping[str, Key]) -> int:
        return Mailbox.lost_hints(self, model, names)

    async def steady(self) -> None:
        """Tables do."""


def _in_order(entries: Iterable[Entry]) -> list[Entry]:
    """Whatever order the database's heap has given them: the same story must go the same way twice."""
    return sorted(entries, key=lambda entry: str(entry["step"]))


def mailbox(url: str, backend: str | None) -> Mailbox:
    """In lists without a backend. Skips the test when the backend's server cannot be had."""
    if backend is None:
        return Mailbox()
    return TransactionalMailbox(url, backend) if backend == "pgmq" else BackendMailbox(url, backend)
