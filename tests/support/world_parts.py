"""The pieces of a world: where its messages lie, an engine that records its calls, workers and what they hold."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tasker.contracts.execution import Claim, Failure, Outcome
from tasker.contracts.messaging import QueuedMessage
from tasker.db.connection import Connection
from tasker.services.engine import Answer, Engine
from tasker.services.exchange import Result
from tests.support.model_parts import Ending, Key, Step

Call = tuple[str, dict[str, Any], Answer]


class Half:
    """Randomness without surprise: the middle of every jitter."""

    def random(self) -> float:
        return 0.5


class Mailbox:
    """A messaging service that keeps its messages in lists. `delivered` are the results that the next receive gives."""

    def __init__(self) -> None:
        self.backend = object()
        self.hints: list[dict[str, Any]] = []
        self.results: list[dict[str, Any]] = []
        self.delivered: list[dict[str, Any]] = []

    async def send_hints(self, entries: Iterable[dict[str, Any]]) -> dict[str, int]:
        hints = list(entries)
        self.hints += hints
        return dict(Counter(hint["namespace"] for hint in hints))

    async def send_step_results(self, results: Iterable[dict[str, Any]]) -> list[int]:
        self.results += results
        return []

    async def receive_step_results(self, limit: int, visibility_timeout: float) -> list[QueuedMessage]:
        taken, self.delivered = self.delivered, []
        return [QueuedMessage("results", n, json.dumps(result).encode()) for n, result in enumerate(taken)]

    async def ack_message(self, queue: str, message_id: int) -> bool:
        return True


class WatchedEngine(Engine):
    """Records what is called. `intruder` runs once, between the named read and whatever follows it."""

    def __init__(self, connection: Connection, mailbox: Mailbox) -> None:
        super().__init__(connection, mailbox)  # type: ignore[arg-type]
        self.mailbox = mailbox
        self.calls: list[tuple[str, dict[str, Any], Answer]] = []
        self.intruder: tuple[str, Callable[[], Awaitable[object]]] | None = None

    async def call(self, function: str, args: dict[str, Any] | str) -> Answer:
        before = len(self.mailbox.hints)
        answer = await super().call(function, args)
        sent = self.mailbox.hints[before:]
        self.calls.append((function, json.loads(args) if isinstance(args, str) else args, {**answer, "send": sent}))
        return answer

    async def read(self, function: str, args: dict[str, Any]) -> Answer:
        answer = await super().read(function, args)
        self.calls.append((function, args, answer))
        if self.intruder and self.intruder[0] == function:
            (_, intrude), self.intruder = self.intruder, None
            await intrude()
        return answer

    async def missing_hints(self, namespace: str, steps: Sequence[str]) -> list[str]:
        present = {hint["step"] for hint in self.mailbox.hints}
        return [step for step in steps if step not in present]


@dataclass(eq=False, repr=False)
class Attempt:
    """A claim in a worker's hands; `ending` once its handler has returned, `parked` when that path brings it."""

    key: Key
    row: dict[str, Any]
    ending: Ending | None = None
    parked: bool = False

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(f"<{self.key[1]} of {self.key[0][24:30]} token {self.row['token']}>")


@dataclass(eq=False, repr=False)
class Worker:
    """A logical worker; `identity` changes when it dies and another takes its place."""

    number: int
    slots: int
    identity: str = ""
    alive: bool = True
    unserved: set[str] = field(default_factory=set)
    running: list[Attempt] = field(default_factory=list)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(f"<worker {self.number}>")


def result_of(step: Step, row: dict[str, Any], ending: Ending) -> Result:
    plan = step.task.plan
    claim = Claim(
        row["step"],
        row["task"],
        row["name"],
        step.plan.name,
        plan.hash,
        plan.namespace,
        row["token"],
        row["attempt"],
        max(1, step.plan.retry.max_attempts),
        row["task"],
    )
    if ending.failed:
        failure = Failure("it broke", "TestError", ending.retryable, retry_after=ending.retry_after)
        return Result(Outcome(claim, 1, failure=failure), plan)
    return Result(Outcome(claim, 1, ending.result), plan, json.dumps(ending.result))
