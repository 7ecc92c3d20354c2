"""Moving a deployment to another messaging provider while tasks are in flight.

Nothing is copied from the old provider but what only it knows (requests for tasks): every hint is derived again from
the rows, which decide all claims, so that processes on both providers may run side by side. Each part may be repeated:
a crash in between, or a second run, doubles hints at most.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import field

from tasker.contracts.dataclasses import dataclass
from tasker.contracts.messaging import QueueStats
from tasker.db.queries import query
from tasker.errors import MessagingError, UsageError
from tasker.messaging.service import MessagingService
from tasker.services.engine.calls import Engine
from tasker.services.fleet.brokers import LiveProcess, live_processes, namespaces

SLICE = 500
"""Open tasks per query, hints per call, messages per look."""
HIDDEN_SECONDS = 60.0
FIRST = "00000000-0000-0000-0000-000000000000"


@dataclass(slots=True)
class PendingMessages:
    """What needs a message on the new provider."""

    steps: Counter[str] = field(default_factory=Counter)
    """Enqueued steps by namespace."""
    results: int = 0
    """Parked results."""


class BrokerMigration:
    """To the provider of `engine`, whose hints are sent there."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._new = engine.messaging

    async def waiting(self) -> PendingMessages:
        """What `send` would send, counted."""
        return await self._through(send=False)

    async def send(self) -> PendingMessages:
        """Give every enqueued step and every parked result a message on the new provider; what was sent.

        Steps that have one are left out where the provider can be searched; elsewhere they get a second one. Raises
        `MessagingError` when the provider fails: run it again.
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
            ((found,),) = await self._engine.connection.execute(query("brokers", "waiting"), args)
            if found["last"] is None:
                return waiting
            for namespace, steps in found["enqueued"].items():
                lacking = await self._lacking(namespace, steps)
                waiting.steps[namespace] += await self._hint(namespace, lacking) if send else len(lacking)
            waiting.results += len(found["parked"])
            if send and found["parked"]:
                await self._new.send_step_results(found["parked"])
            after = found["last"]

    async def _lacking(self, namespace: str, steps: Sequence[str]) -> Sequence[str]:
        """Those without a message, as far as the provider can be searched for them."""
        return await self._engine.missing_hints(namespace, steps) if self._engine.transactional else steps

    async def _hint(self, namespace: str, steps: Sequence[str]) -> int:
        await self._new.ensure_namespace(namespace)
        return sum([await self._hint_some(namespace, steps[at : at + SLICE]) for at in range(0, len(steps), SLICE)])

    async def _hint_some(self, namespace: str, steps: Sequence[str]) -> int:
        """Note that they are hinted, so that no sweep counts them as lost, and send; not those claimed since."""
        answer = await self._engine.read("hinted", {"steps": list(steps)})
        return sum((await self._new.send_hints(answer.get("send") or ())).values())

    # The old provider

    async def leaves(self, given: str | None, configured: str) -> str:
        """The provider to leave: the one given, else the configured one, else what processes used before.

        Raises `UsageError` when that is none, or the new one.
        """
        to = self._new.provider_name()
        if given == to:
            raise UsageError(f"{to} is the provider to move to, and to leave", hint="name two different providers")
        if given or configured != to:
            return given or configured
        rows = await self._engine.connection.execute(query("brokers", "former"), {"backend": to})
        if not rows:
            raise UsageError(f"no process has used another provider than {to}", hint="name it with --from NAME")
        return str(rows[0][0])

    async def processes_on(self, backend: str) -> list[LiveProcess]:
        """Processes that run and take their messages from that provider."""
        return [process for process in await live_processes(self._engine.connection) if process.backend == backend]

    async def left_on(self, old: MessagingService) -> dict[str, QueueStats]:
        """The queues that the old provider still has."""
        names = [old.names.step_queue(namespace) for namespace, _ in await namespaces(self._engine.connection)]
        queues = [*names, *old.names.orchestration()]
        return {queue: await old.queue_stats(queue) for queue in queues if await old.queue_exists(queue)}

    async def drain(self, old: MessagingService) -> dict[str, QueueStats]:
        """Leave nothing on the old provider: hints are sent anew, requests move, queues are removed; those removed.

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
        """What no row tells: each message is sent before it is acknowledged, and the queue is empty afterwards."""
        await self._new.create_queue(queue)
        while messages := await old.receive_messages(queue, SLICE, HIDDEN_SECONDS):
            for message in messages:
                await self._new.send_message(queue, message.payload)
            await old.ack_messages(messages)
        if stay := (await old.queue_stats(queue)).depth:
            raise MessagingError(
                f"{queue} on {old.provider_name()} still has {stay} that cannot be received now: hidden or delayed",
                hint="nothing is lost and the queue stays: drain again in a minute",
            )
