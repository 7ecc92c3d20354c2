"""The pieces of a world: an engine that records its calls, workers and what they hold."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tasker.db.connection import Connection
from tasker.engine.answers import ClaimAnswer, StartableSubmission, SubmitAnswer
from tasker.engine.calls import Answer, Args, Engine
from tasker.engine.exchange import AdvanceResult, ClaimRow, Result, ResultEvents
from tasker.handlers.claims import Claim, Failure, Success
from tasker.json_values import encode, to_json
from tasker.services.submission.submit import Submission, Submitter
from tasker.template.plan import Plan
from tests.support.model.parts import Ending, Key, Step
from tests.support.world.mail import LOOK_SECONDS, PATIENCE, Mailbox

Call = tuple[str, dict[str, Any], Answer]


class Half:
    """Randomness without surprise: the middle of every jitter."""

    def random(self) -> float:
        return 0.5


class WatchedEngine(Engine):
    """Records what is called. `intruder` runs once, between the named look and whatever follows it: that at a task's
    `graph`, which need not be read to be known, is over when what a step creates is written."""

    def __init__(self, connection: Connection, mail: Mailbox) -> None:
        super().__init__(connection, mail)  # type: ignore[arg-type]
        self.mail = mail
        self.calls: list[Call] = []
        self.intruder: tuple[str, Callable[[], Awaitable[object]]] | None = None

    def begin(self) -> None:
        """Nothing of an earlier story is left, not even whose turn it is: the same actions do the same again."""
        self.calls, self._turn = [], 0

    async def call(self, function: str, args: Args, *, ends_logged: bool = False) -> Answer:
        if any("gv" in item for item in args.get("items", ())):
            await self._looked("graph")
        self.mail.sent = []
        answer = await super().call(function, args, ends_logged=ends_logged)
        await self.mail.look(self.connection)
        self._record(function, json.loads(to_json(args)), answer)
        return answer

    async def submit_and_wake(self, joined: str, args: Args) -> Answer:
        self.mail.sent = []
        answer = await super().submit_and_wake(joined, args)
        await self.mail.look(self.connection)
        self._record("submit", json.loads(to_json(args)), answer)
        return answer

    async def pop_and_claim(self, joined: str, args: Args) -> Answer:
        self.mail.sent, before = [], list(self.mail.hints)
        answer = await super().pop_and_claim(joined, args)
        await self.mail.look(self.connection)
        steps = [hint["step"] for hint in before if hint not in self.mail.hints]
        self._record("claim", {**args, "steps": steps}, answer)
        return answer

    def _record(self, function: str, args: dict[str, Any], answer: Answer) -> None:
        self.calls.append((function, args, {**answer, "send": self.mail.sent}))

    async def read(self, function: str, args: Args) -> Answer:
        answer = await super().read(function, args)
        self.calls.append((function, dict(args), answer))
        if function != "graph":
            await self._looked(function)
        return answer

    async def _looked(self, moment: str) -> None:
        if self.intruder and self.intruder[0] == moment:
            (_, intrude), self.intruder = self.intruder, None
            await intrude()

    async def take(self, args: dict[str, Any], hints: Sequence[dict[str, Any]]) -> ClaimAnswer:
        """What a worker does: as many hints as these, and these where one can choose, become claims."""
        self.mail.choose(hints)
        async with asyncio.timeout(PATIENCE):
            while not (answer := await self._take_some(args, len(hints))).popped:
                await asyncio.sleep(LOOK_SECONDS)
        return answer

    async def _take_some(self, args: dict[str, Any], limit: int) -> ClaimAnswer:
        if self.transactional:
            return await self.claim({**args, "slots": min(args["slots"], limit), "turn": 0})
        answer = await self.claim_received(args, await self.receive(args["namespaces"], limit))
        await self.messaging.ack_messages(answer.taken)
        return answer

    async def missing_hints(self, namespace: str, steps: Sequence[str]) -> list[str]:
        found = self.mail.missing(steps)
        return await super().missing_hints(namespace, steps) if found is None else found


@dataclass(eq=False, repr=False)
class Attempt:
    """A claim in the hands of an incarnation; `ending` once its handler has returned, `parked` when that path brings
    it."""

    key: Key
    row: dict[str, Any]
    identity: str
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


class Handed:
    """Who submits: a program without a worker, or the process of one, which says this of itself; `claims` are what it
    is handed, and `answer_lost` says that it never hears of them."""

    def __init__(self, worker: Worker | None = None, caller: Args | None = None, *, answer_lost: bool = False) -> None:
        self.worker, self._caller, self.answer_lost = worker, caller or {}, answer_lost
        self.claims: Sequence[ClaimRow] = ()

    async def submit(self, submitter: Submitter, plan: Plan, requests: Sequence[Submission]) -> Sequence[Any]:
        drafts = [submitter.drafts.draft(plan, request) for request in requests]
        return await submitter.submit_drafts(plan, drafts, force=True, starter=self if self.worker else None)

    async def start(self, submit: StartableSubmission, roots: int, args: Args) -> SubmitAnswer:
        answer = await submit({**self._caller, **args})
        self.claims = answer.claims
        return answer


NOBODY = Handed()


def result_of(step: Step, row: dict[str, Any], ending: Ending) -> Result:
    plan = step.task.plan
    claim = Claim(
        row["step"],
        row["task"],
        row["name"],
        row["template"],
        step.plan.ordinal,
        plan.namespace,
        row["token"],
        row["attempt"],
        max(1, step.plan.retry.max_attempts),
        row["task"],
    )
    events = ResultEvents() if step.plan.publishes_events else None
    if ending.failed:
        failure = Failure("it broke", "TestError", ending.retryable, retry_after=ending.retry_after)
        return Result(claim, plan, 1, failure, events)
    return Result(claim, plan, 1, Success(encode(ending.result)), events)


def without_claims(swept: AdvanceResult) -> None:
    """A sweep starts nothing."""
    assert not swept.claims
