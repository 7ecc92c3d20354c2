"""Migration of a deployment to another messaging provider while tasks are in flight.

From the old provider only task requests are copied, because no row has them. Every other message is derived again from
the rows, which decide all claims, so processes on both providers may run side by side. Each part may be repeated: a
crash or a second run at most duplicates wake-up messages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import field

from tasker.dataclasses import dataclass
from tasker.db.sql_files import query
from tasker.engine.calls import Engine
from tasker.errors import MessagingError, UsageError
from tasker.messaging.port import QueueStats
from tasker.messaging.service import MessagingService
from tasker.services.fleet.brokers import LiveProcess, live_processes, namespaces

SLICE = 500
"""Open tasks per query, messages per send and per receive."""
HIDDEN_SECONDS = 60.0
FIRST = "00000000-0000-0000-0000-000000000000"


@dataclass(slots=True)
class PendingMessages:
    """Steps and results that need a message on the new provider."""

    steps: Counter[str] = field(default_factory=Counter)
    """Enqueued steps by namespace."""
    results: int = 0
    """Parked results."""


class BrokerMigration:
    """Migration to the provider of `engine`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._new = engine.messaging

    async def waiting(self) -> PendingMessages:
        """Count the messages that `send` would send."""
        return await self._through(send=False)

    async def send(self) -> PendingMessages:
        """Send a message for every enqueued step and parked result to the new provider, and return the counts.

        Steps that have a message are left out if the provider can be searched; otherwise they get a second one. Raises
        `MessagingError` if the provider fails: run it again.
        """
        await self._new.ensure_orchestration_queues()
        sent = await self._through(send=True)
        if sent.steps:
            await self._engine.wake(sent.steps)
        return sent

    async def _through(self, *, send: bool) -> PendingMessages:
        waiting, after = PendingMessages(), FIRST
        while True:
            args = {"after": after, "limit": SLICE}
            ((page,),) = await self._engine.connection.execute(query("brokers", "waiting"), args)
            if page["last"] is None:
                return waiting
            for namespace, steps in page["enqueued"].items():
                lacking = await self._lacking(namespace, steps)
                waiting.steps[namespace] += await self._hint(namespace, lacking) if send else len(lacking)
            waiting.results += len(page["parked"])
            if send and page["parked"]:
                await self._new.send_step_results(page["parked"])
            after = page["last"]

    async def _lacking(self, namespace: str, steps: Sequence[str]) -> Sequence[str]:
        """Return the steps without a message, as far as the provider can be searched for them."""
        return await self._engine.missing_hints(namespace, steps) if self._engine.transactional else steps

    async def _hint(self, namespace: str, steps: Sequence[str]) -> int:
        await self._new.ensure_namespace(namespace)
        return sum([await self._hint_some(namespace, steps[at : at + SLICE]) for at in range(0, len(steps), SLICE)])

    async def _hint_some(self, namespace: str, steps: Sequence[str]) -> int:
        """Record the steps as hinted, so that no sweep counts them as lost, and send; skip those claimed meanwhile."""
        answer = await self._engine.read("wakeups_sent", {"steps": list(steps)})
        return sum((await self._new.send_hints(answer.get("send") or ())).values())

    # The old provider

    async def leaves(self, given: str | None, configured: str) -> str:
        """Return the provider to leave: the given one, else the configured one, else the one used before.

        Raises `UsageError` if there is none, or it is the new one.
        """
        to = self._new.provider_name()
        if given == to:
            raise UsageError(f"{to} is both the old and the new provider", hint="name two different providers")
        if given or configured != to:
            return given or configured
        rows = await self._engine.connection.execute(query("brokers", "former"), {"backend": to})
        if not rows:
            raise UsageError(f"no previous provider found besides {to}", hint="name it with --from NAME")
        return str(rows[0][0])

    async def processes_on(self, backend: str) -> list[LiveProcess]:
        """Return the live processes that receive their messages from that provider."""
        return [process for process in await live_processes(self._engine.connection) if process.backend == backend]

    async def left_on(self, old: MessagingService) -> dict[str, QueueStats]:
        """Return the queues that still exist on the old provider."""
        names = [old.names.step_queue(namespace) for namespace, _ in await namespaces(self._engine.connection)]
        queues = [*names, *old.names.orchestration()]
        return {queue: await old.queue_stats(queue) for queue in queues if await old.queue_exists(queue)}

    async def drain(self, old: MessagingService) -> dict[str, QueueStats]:
        """Empty the old provider: resend wake-up messages, move requests, and delete its queues, which are returned.

        Raises `MessagingError` while processes still use it, and while requests there are hidden or delayed.
        """
        if running := await self.processes_on(old.provider_name()):
            raise MessagingError(
                f"still on {old.provider_name()}: {', '.join(map(str, running))}",
                hint=f"restart them with the backend {self._new.provider_name()}, then drain",
            )
        left = await self.left_on(old)
        await self.send()
        for queue in {old.names.task_requests, old.names.task_finalizations} & left.keys():
            await self._move(queue, old)
            await old.delete_queue(queue)
        for queue in left:
            await old.delete_queue(queue)
        return left

    async def _move(self, queue: str, old: MessagingService) -> None:
        """Move messages that no row can replace; each is sent before it is acknowledged, and the queue ends empty."""
        await self._new.create_queue(queue)
        while messages := await old.receive_messages(queue, SLICE, HIDDEN_SECONDS):
            for message in messages:
                await self._new.send_message(queue, message.payload)
            await old.ack_messages(messages)
        if stay := (await old.queue_stats(queue)).depth:
            raise MessagingError(
                f"{queue} on {old.provider_name()} still has {stay} that are hidden or delayed",
                hint="no message is lost and the queue is kept: drain again in a minute",
            )
