"""Client of the engine's SQL functions: one call is one transaction, with its wake-ups and notifications.

A transactional backend (queues in the same database) sends wake-up messages in the transaction that makes them true.
With any other backend the messages are sent after the commit; if the process crashes in between, the sweep sends them
again.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any, Protocol, Self, TypeAlias, TypeVar

from tasker.db.connection import DataRefused, Statements
from tasker.db.sql_files import query
from tasker.db.transactions import SharedTransactions
from tasker.engine.answers import ClaimAnswer, SubmitAnswer
from tasker.engine.changes import StepChange
from tasker.engine.fleet_rules import DEFAULT_RULES, FleetRules, non_default_rules, shared_arguments
from tasker.engine.retry import fingerprint
from tasker.engine.task_log import enqueued, log_enqueued, log_unknown, logs_enqueue, read_task_ids
from tasker.engine.waiters import WaiterNotifications
from tasker.engine.write_listeners import WriteListeners
from tasker.errors import DatabaseError, MessagingError
from tasker.json_values import to_json
from tasker.logging.lines import log_line
from tasker.messaging.messages import PoisonMessage, StepHint
from tasker.messaging.port import QueuedMessage, TransactionalBackend
from tasker.messaging.service import MessagingService
from tasker.resilience.outage import level_of

Answer = dict[str, Any]
Args = Mapping[str, Any]
OnFinished: TypeAlias = Callable[[str, str], None]


class AnswerType(Protocol):
    """Answer of an engine function as a type of its own."""

    @classmethod
    def parse(cls, answer: Mapping[str, Any]) -> Self:
        """Parse the answer of an engine function."""
        ...


Answered = TypeVar("Answered", bound=AnswerType)
UNKNOWN_STEP, NOT_CLAIMABLE = "unknown step", "not_claimable"
QUEUE_READS = 3
"""Number of consecutive reads in which a queue must appear too shallow before its messages are treated as lost."""
_log = logging.getLogger("tasker.engine")


class Engine:
    """Client of the engine's SQL functions. One instance serves one purpose (claims, results, the rest) over one
    connection.

    When a call ends a task, the programs that wait for it are notified by the owner of `notices`; without `notices`,
    before the call returns. `on_finished(task_uuid, state)` is called for each ended task, for processes in which no
    other component reads the answers. `listeners` receive every answer.

    All methods raise `DatabaseUnavailable` if the connection is lost: it is then unknown whether the call was
    committed. Every call is safe to repeat.
    """

    def __init__(
        self,
        connection: Statements,
        messaging: MessagingService,
        rules: FleetRules = DEFAULT_RULES,
        notices: WaiterNotifications | None = None,
        on_finished: OnFinished | None = None,
        listeners: WriteListeners | None = None,
    ) -> None:
        self.connection, self._on_finished = connection, on_finished
        self._lending = connection if isinstance(connection, SharedTransactions) else None
        self._notices, self._tells = notices or WaiterNotifications(connection), notices is None
        self.messaging, self.rules, self._rules = messaging, rules, non_default_rules(rules)
        self._shared = shared_arguments(rules)
        self.listeners = listeners or WriteListeners()
        self._turn, backend = 0, messaging.backend
        self._joined = backend.transactional_sql() if isinstance(backend, TransactionalBackend) else None

    @property
    def transactional(self) -> bool:
        """True if wake-up messages are sent in the engine's own transactions."""
        return self._joined is not None

    async def call_typed(self, function: str, args: Args, answer: type[Answered]) -> Answered:
        """Call a function that moves steps, and return its answer as the type `answer`."""
        return answer.parse(await self.call(function, args))

    async def call(self, function: str, args: Args, *, ends_logged: bool = False) -> Answer:
        """Call `tasker.FUNCTION_v1`, send the wake-up messages of its answer, and notify programs that wait for ended
        tasks.

        Inside a shared transaction (`SharedTransactions.together`) all of this happens after the commit. `ends_logged`:
        the caller itself logs the ends of the tasks.
        """
        began = perf_counter()
        text = self.arguments(args)
        if self._joined:
            answer = await self.connection.call(f"{self._joined.call}('{function}_v1', %s::jsonb)", text)
        else:
            answer = await self.connection.call(f"tasker.{function}_v1(%s::jsonb)", text)
        if self._lending is not None and (transaction := self._lending.transaction) is not None:
            transaction.after_commit(partial(self._committed, function, args, answer, began, ends_logged))
        else:
            await self._committed(function, args, answer, began, ends_logged)
        return answer

    def arguments(self, args: Args) -> str:
        """Return the arguments of a call as JSON, with those that all calls of this process share."""
        return self._text_of({**self._shared, **args, **self._rules})

    def expression(self, function: str) -> str:
        """Return a call of `tasker.FUNCTION_v1` as SQL for a connection of others; `{}` stands for its arguments."""
        call = f"{self._joined.call}('{function}_v1', " if self._joined else f"tasker.{function}_v1("
        return f"{call}cast({{}} as jsonb))"

    async def committed(self, function: str, args: Args, answer: Answer, began: float) -> Answer:
        """Send and notify what follows from a call that was committed on a connection of others."""
        await self._committed(function, args, answer, began, True)
        return answer

    def _text_of(self, args: Args) -> str:
        """Return the arguments of a function that sends wake-up messages, as JSON.

        If the backend's SQL function sends them, `tell_enqueued` makes it add the answer of `tasker.enqueued_v1`; the
        engine functions do not see that argument.
        """
        return to_json({**args, "tell_enqueued": True} if self._joined and logs_enqueue() else args)

    async def _committed(self, function: str, args: Args, answer: Answer, began: float, ends_logged: bool) -> None:
        """Send, notify and log after the commit. Must not raise: the change can no longer be rolled back."""
        if not self._joined and (entries := answer.pop("send", None)):
            hints = [entry for entry in entries if "step" in entry]
            sent = await self._send_committed(hints) if hints else {}
            answer["sent"] = dict.fromkeys((entry["namespace"] for entry in entries if "step" not in entry), 0) | sent
            answer["unsent"] = 0 if sent else len(hints)
            if sent and logs_enqueue():
                answer |= await enqueued(self.connection, hints)
        if waiters := answer.pop("waiters", None):
            self._notices.note(waiters)
            if self._tells:
                await self._notices.flush()
        if finished := answer.get("finished"):
            await self.listeners.closed(args, answer, self.connection, logged=ends_logged)
            if self._on_finished is not None:
                for task_uuid, state in finished.items():
                    self._on_finished(task_uuid, state)
        self._answered(function, args, answer, began)

    def _answered(self, function: str, args: Args, answer: Answer, began: float) -> None:
        if "enqueued" in answer:
            log_enqueued(answer, self.messaging.names, began)
        self.listeners.answered(function, args, answer, began)

    async def submit(self, args: Args) -> SubmitAnswer:
        """Call `tasker.submit_v1` in a transaction of its own, and wake sleeping workers after its commit (rule 7).

        If messages are sent in the transaction, the wake-up takes no further round trip, unless the first steps might
        have been claimed in it: then a plain statement costs less. Raises as `call`. After a statement timeout, as
        after a lost connection, the submission may have been committed.
        """
        if self._joined and not args.get("slots"):
            return SubmitAnswer.parse(await self.submit_and_wake(self._joined.call, args))
        answer = SubmitAnswer.parse(await self.call("submit", args))
        pushed = not self._joined and self.messaging.capabilities.push
        if names := [name for name, count in answer.sent.items() if not (pushed and count)]:
            await self.wake(names)
        return answer

    async def wake(self, namespaces: Iterable[str]) -> None:
        """Wake sleeping workers of the namespaces. Errors are only logged: the change is committed, and sleepers also
        poll."""
        try:
            await self.connection.execute("select tasker.wake_v1(%s)", (sorted(namespaces),))
        except DatabaseError as error:
            _log.log(level_of(error), "wakeup_failed reason=%s", error)

    async def submit_and_wake(self, joined: str, args: Args) -> Answer:
        """Submit and wake in one statement; `joined` is the backend's SQL function that sends in the transaction."""
        statement, began = "call tasker.submit_and_wake_v1(%s, %s::jsonb, null)", perf_counter()
        ((answer,),) = await self.connection.execute(statement, (joined, self._text_of({**self._shared, **args})))
        self._answered("submit", args, answer, began)
        return dict(answer)

    async def _send_committed(self, hints: Sequence[dict[str, Any]]) -> dict[str, int]:
        """Send the messages of a committed change. Errors are only logged: the sweep sends the messages again."""
        try:
            return await self.messaging.send_hints(hints)
        except MessagingError as error:
            _log.log(level_of(error), "wakeups_not_sent count=%s reason=%s", len(hints), error)
            return {}

    async def read(self, function: str, args: Args) -> Answer:
        """Call a function whose answer needs no follow-up: it sends no messages and ends no task."""
        return await self.connection.call(f"tasker.{function}_v1(%s::jsonb)", to_json(args))

    async def claim(self, args: Args) -> ClaimAnswer:
        """Take up to `slots` wake-up messages of `namespaces` and claim their steps."""
        if self._joined:
            joined = self._joined.claim
            answer = await self._claimed(args, lambda call_args: self.pop_and_claim(joined, call_args))
            for step in answer.unknown:  # the database has already quarantined them
                log_unknown(f"worker queues of {', '.join(args['namespaces'])}", step)
            return answer
        answer = await self.claim_received(args, await self.receive(args["namespaces"], args["slots"]))
        await self.messaging.ack_messages(answer.taken)
        return answer

    async def _claimed(self, args: Args, claim: Callable[[Args], Awaitable[Answer]]) -> ClaimAnswer:
        """Claim; if the database refuses a value, claim each step alone, and fail a step that is refused alone."""
        try:
            return ClaimAnswer.parse(await claim(args))
        except DataRefused as error:
            _log.warning("claim_refused reason=%s; its steps are claimed one by one", error)
        answer = ClaimAnswer.parse(await claim({**args, "each": True}))
        for row in answer.unclaimable:
            await self._fail_unclaimable(row, args)
        return answer

    async def _fail_unclaimable(self, row: Mapping[str, Any], args: Args) -> None:
        """Fail a step permanently. If that is refused too, only the log line remains, and sweeps send its message
        again."""
        ids = (await read_task_ids(self.connection, [row["task"]]))[row["task"]]
        log_line(_log, logging.ERROR, "step_not_claimable", {**ids, "step_uuid": row["step"], "error": row["reason"]})
        message = f"the database refuses to claim this step: {row['reason']}"
        error = {"message": message, "error_type": NOT_CLAIMABLE, "retryable": False, "attempt": row["attempt"]}
        error["fingerprint"] = fingerprint(error)
        change: StepChange = {"s": row["step"], "t": row["task"], "kind": "fail", "e": error}
        advance = {**args, "items": [change], "slots": 0, "wait": False}
        with suppress(DataRefused):
            answer = await self.call("advance", advance)
            if "replan" in (answer.get("verdicts") or {}).values():
                from tasker.engine.failure_writes import fail_with_plan  # few steps fail so

                await fail_with_plan(self, change, advance)

    async def pop_and_claim(self, joined: str, args: Args) -> Answer:
        """Take wake-up messages and claim their steps in one transaction; `joined` is the backend's SQL function for
        that."""
        began = perf_counter()
        answer = await self.connection.call(f"{joined}(%s::jsonb)", self._text_of({**self._shared, **args}))
        self._answered("claim", args, answer, began)
        return answer

    async def missing_hints(self, namespace: str, steps: Sequence[str]) -> list[str]:
        """Those of the steps that have no message. Where messages cannot be searched: as many as are too few."""
        return (await self.hints_missing_in({namespace: steps})).get(namespace, [])

    async def hints_missing_in(self, waiting: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
        """Return `missing_hints` of each namespace, of all of them with as many statements as of one."""
        if not self._joined:
            short = await self._hints_short_of([*waiting])
            return {name: list(steps)[: short[name]] for name, steps in waiting.items() if short[name]}
        steps_of = {name: list(steps) for name, steps in waiting.items()}
        statement = query("brokers", "missing").format(missing=self._joined.missing)
        missing: dict[str, list[str]] = {}
        for name, step in await self.connection.execute(statement, {"waiting": json.dumps(steps_of)}):
            missing.setdefault(name, []).append(step)
        return {name: missing[name] for name in waiting if name in missing}

    async def _hints_short_of(self, namespaces: Sequence[str]) -> dict[str, int]:
        """By how much each queue is shallower than the number of enqueued steps: only so many can be lost (rule 13).

        The two numbers are read one after the other. A step that is enqueued or claimed in between makes a message look
        lost only if that happens in each of the `QUEUE_READS` reads, because a shortage is read again.
        """
        queues = {name: self.messaging.names.step_queue(name) for name in namespaces}
        before: dict[str, int] = {}
        shortage: dict[str, int] = {}
        for _ in range(QUEUE_READS):
            looked_at = [name for name in namespaces if shortage.get(name) != 0]
            if not looked_at:
                break
            stats = await self.messaging.all_stats([queues[name] for name in looked_at])
            after = await self._enqueued(looked_at)
            for name in looked_at:
                queue_stats = stats.get(queues[name])
                there = queue_stats.depth + queue_stats.unseen if queue_stats else 0
                # the step or its message may be the newer one
                short = max(0, min(before.get(name, after[name]), after[name]) - there)
                shortage[name] = min(shortage.get(name, short), short)
            before = after
        return shortage

    async def _enqueued(self, namespaces: Sequence[str]) -> dict[str, int]:
        rows = await self.connection.execute(query("brokers", "enqueued"), {"namespaces": list(namespaces)})
        return dict.fromkeys(namespaces, 0) | dict(rows)

    async def receive(self, namespaces: Sequence[str], limit: int) -> list[QueuedMessage]:
        """Return up to `limit` messages of the namespaces, for `claim_received`. Each call starts with another
        namespace."""
        self._turn += 1
        first = self._turn % max(1, len(namespaces))
        received: list[QueuedMessage] = []
        for namespace in [*namespaces[first:], *namespaces[:first]]:
            if (room := limit - len(received)) > 0:
                received += await self.messaging.receive_step_messages(namespace, room, self.rules.hidden_seconds)
        return received

    async def claim_received(self, args: Args, received: Sequence[QueuedMessage]) -> ClaimAnswer:
        """Claim steps for as many messages as there are slots, return the other messages, and answer as `claim`, with
        `taken`.

        The messages in `taken` must be acknowledged after the claim's commit, so that they become visible again after a
        crash in between, and after their steps have started, so that the start does not wait for a slow broker.
        """
        taken = received[: args["slots"]]
        await self.return_messages(received[args["slots"] :])
        try:
            steps = [await self._step_of(message) for message in taken]
            claim_args = {**args, "steps": [step for step in steps if step]}
            answer = await self._claimed(claim_args, lambda call_args: self.call("claim", call_args))
        except DatabaseError:
            await self.return_messages(taken)
            raise
        unknown = answer.unknown
        to_acknowledge = [
            message
            for message, step in zip(taken, steps, strict=True)
            if step not in unknown or await self._quarantine_unknown(message, step)
        ]
        return replace(answer, popped=len(taken), taken=to_acknowledge)

    async def _quarantine_unknown(self, message: QueuedMessage, step: str) -> bool:
        """Quarantine a wake-up message of a step that is not in this database, and return True.

        The claim is already committed, so this must not raise: if the write fails, the message is returned (False).
        """
        log_unknown(message.queue, step)
        try:
            await self.quarantine_message(message.queue, message.message_id, message.payload, UNKNOWN_STEP)
        except DatabaseError:
            with suppress(MessagingError):
                await self.return_messages([message])
            return False
        return True

    async def return_messages(self, messages: Sequence[QueuedMessage]) -> None:
        """Return these messages to their queues, visible at once."""
        for message in messages:
            await self.messaging.nack_message(message.queue, message.message_id)

    async def _step_of(self, message: QueuedMessage) -> str | None:
        try:
            return str(StepHint.decode(message.payload).step_uuid)
        except PoisonMessage as error:
            _log.warning(
                "wakeup_message_refused queue=%s id=%s reason=%s", message.queue, message.message_id, error.reason
            )
            await self.quarantine_message(message.queue, message.message_id, message.payload, error.reason)
            return None

    async def quarantine_message(self, queue: str, message_id: int, payload: bytes, reason: str) -> None:
        """Store an unusable message with the reason, for inspection with `tasker task refused`."""
        await self.connection.execute(
            query("brokers", "set_aside"),
            {
                "queue": queue,
                "message_id": message_id,
                "message": json.dumps({"raw": payload.decode("utf-8", "backslashreplace").replace("\0", "\\0")}),
                "reason": reason.encode("utf-8", "backslashreplace").decode().replace("\0", "\\0"),
            },
        )
