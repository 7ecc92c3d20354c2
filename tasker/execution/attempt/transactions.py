"""Steps whose handler works in the transaction that completes them (`effect: transactional`).

After the handler has returned, its result is written on its own connection, and committed if the engine accepts it. So
its rows and the completion of the step are one commit. Whatever goes wrong before it leaves neither.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol

from tasker.dataclasses import dataclass
from tasker.db.handler_transaction import (
    AsyncHandlerTransaction,
    CommitUnknown,
    HandlerTransaction,
    begin,
    complete,
    open_transaction,
    own_source,
)
from tasker.engine.exchange import AdvanceResult, CompletingWorker, PreparedWrite, Result
from tasker.errors import DatabaseError, LockTimeout
from tasker.execution.attempt.attempt import AttemptEnd, ClaimLost, Ending, with_events
from tasker.execution.attempt.settle import settle_return_value
from tasker.handlers.claims import Claim, Failure, HandlerEvent, Success

if TYPE_CHECKING:
    from tasker.db.django_transaction import DjangoTransaction
    from tasker.execution.attempt.attempt import Attempt
    from tasker.handlers.context import StepContext
    from tasker.handlers.registry.invocation import ResolvedHandler


PREPARE_SECONDS = 30
"""Longest wait of a thread for the events of its result; it has a transaction open, and the worker may have ended."""


class StepTransactions(Protocol):
    """Part of the engine in transactions of handlers."""

    def prepare(self, result: Result, caller: CompletingWorker) -> PreparedWrite:
        """Return the write that completes a step with this result."""
        ...

    async def committed(self, write: PreparedWrite, answer: dict[str, Any]) -> AdvanceResult:
        """Send what follows from a committed write, and return its parsed answer."""
        ...

    async def is_complete(self, claim: Claim) -> bool:
        """Return True if this claim has completed its step; waits for a commit under way. Raises `DatabaseError`."""
        ...


@dataclass(frozen=True, slots=True)
class HandlerTransactions:
    """Transactions of the handlers of one worker; `url` is that of Tasker's database."""

    url: str
    engine: StepTransactions
    caller: Callable[[], CompletingWorker]
    with_events: Callable[[Attempt, Result], Awaitable[Result]]

    def of(self, attempt: Attempt, handler: ResolvedHandler) -> AttemptTransaction:
        """Return the transaction of an attempt, which its handler opens when it is called."""
        return AttemptTransaction(self, attempt, handler, asyncio.get_running_loop())


class AttemptTransaction:
    """The transaction of one attempt."""

    def __init__(
        self,
        transactions: HandlerTransactions,
        attempt: Attempt,
        handler: ResolvedHandler,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._transactions, self._attempt, self._handler, self._loop = transactions, attempt, handler, loop
        self._began = monotonic()
        self._write: PreparedWrite | None = None
        self._answer: dict[str, Any] | None = None
        self._is_unknown = False
        self._is_late = False
        """True once the attempt has ended without a write of the handler's thread, which may still commit one."""
        self._telling: asyncio.Future[AttemptEnd] | None = None

    @property
    def is_written(self) -> bool:
        """True once the result was committed, or its commit got no answer."""
        return self._answer is not None

    def call(self, context: StepContext, events: Callable[[], tuple[HandlerEvent, ...]]) -> Ending:
        """Call a blocking handler and complete its step; `events` returns what it has published."""
        with self._opened() as transaction:
            context.enter(transaction.handle)
            ending = self._settled(self._handler.call(context), events)
            if isinstance(ending, Success) and not self._attempt.cancel.is_set():
                write = asyncio.run_coroutine_threadsafe(self._prepared(ending), self._loop).result(PREPARE_SECONDS)
                answer = transaction.run(self._statements(write))
                if self._is_accepted(write, answer):
                    try:
                        transaction.commit()
                    except CommitUnknown:
                        self._is_unknown = True
                self._write, self._answer = write, answer
                with suppress(RuntimeError):  # the loop of the worker has ended
                    self._loop.call_soon_threadsafe(self._tell_late)
            return ending

    async def call_async(self, context: StepContext, events: Callable[[], tuple[HandlerEvent, ...]]) -> Ending:
        """Call an async handler and complete its step; see `call`."""
        async with self._opened_async() as transaction:
            context.enter(transaction.handle)
            ending = self._settled(await self._handler.call(context), events)
            if isinstance(ending, Success) and not self._attempt.cancel.is_set():
                write = await self._on_the_loop_of_the_worker(ending)
                answer = await transaction.run(self._statements(write))
                if self._is_accepted(write, answer):
                    try:
                        await transaction.commit()
                    except CommitUnknown:
                        self._is_unknown = True
                self._write, self._answer = write, answer
            return ending

    async def settled(self, end: AttemptEnd) -> AttemptEnd:
        """Return the end of the attempt with the answer of its write; a commit without an answer is looked up.

        A success without a committed write becomes a failure.
        """
        write, answer = self._write, self._answer
        if write is None or answer is None:  # an ordinary write would complete the step without the handler's rows
            self._is_late = True
            if isinstance(end, Result) and end.success is not None:
                return replace(end, outcome=_not_committed(self._handler.name))
            return end
        if self._is_unknown:
            try:
                committed = await self._transactions.engine.is_complete(write.result.claim)
            except DatabaseError as error:
                return ClaimLost(write.result.claim, f"its commit was not answered, and the row is unknown: {error}")
            if not committed:
                return replace(write.result, outcome=_not_committed(self._handler.name), events=None)
        if not self._is_accepted(write, answer):  # the completer drops the claim as that of any refused result
            return replace(write.result, stored=AdvanceResult.parse(answer, write.changes))
        return replace(write.result, stored=await self._transactions.engine.committed(write, answer))

    def _tell_late(self) -> None:
        """Send what follows from the commit of a thread that was left behind."""
        if self._is_late:
            self._telling = asyncio.ensure_future(self.settled(ClaimLost(self._attempt.claim)))

    def _statements(self, write: PreparedWrite) -> Any:
        claim = write.result.claim
        return complete(claim.step_uuid, claim.token, write.expression, write.text)

    def _settled(self, value: Any, events: Callable[[], tuple[HandlerEvent, ...]]) -> Ending:
        attempt = self._attempt
        limit, above = attempt.result_limit_bytes, attempt.dependency_results
        return with_events(settle_return_value(value, attempt.step, self._handler.name, limit, above), events())

    async def _prepared(self, success: Success) -> PreparedWrite:
        attempt = self._attempt
        milliseconds = round((monotonic() - self._began) * 1000)
        result = Result(attempt.claim, attempt.plan, milliseconds, success)
        result = await self._transactions.with_events(attempt, result)
        return self._transactions.engine.prepare(result, self._transactions.caller())

    async def _on_the_loop_of_the_worker(self, success: Success) -> PreparedWrite:
        prepared = self._prepared(success)
        if asyncio.get_running_loop() is self._loop:
            return await prepared
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(prepared, self._loop))

    def _is_accepted(self, write: PreparedWrite, answer: Mapping[str, Any]) -> bool:
        """Return False for a claim that no longer counts. Raises `LockTimeout` if the result may count later."""
        advanced, step = AdvanceResult.parse(answer, write.changes), write.result.claim.step_uuid
        if advanced.comes_again(step):
            raise LockTimeout(f"the result was not stored now: {advanced.verdicts[step]}")
        return step not in advanced.verdicts

    @contextmanager
    def _opened(self) -> Iterator[HandlerTransaction | DjangoTransaction]:
        claim = self._attempt.claim
        transaction = open_transaction(self._source(asynchronous=False))
        try:
            transaction.run(begin(claim.step_uuid, claim.token))
            yield transaction
        finally:
            transaction.close()

    @asynccontextmanager
    async def _opened_async(self) -> AsyncIterator[AsyncHandlerTransaction]:
        claim = self._attempt.claim
        transaction = await AsyncHandlerTransaction.open(self._source(asynchronous=True))
        try:
            await transaction.run(begin(claim.step_uuid, claim.token))
            yield transaction
        finally:
            await transaction.close()

    def _source(self, *, asynchronous: bool) -> Any:
        resources, name = self._attempt.resources, self._handler.transaction
        if name is None:
            return own_source(self._transactions.url, asynchronous=asynchronous)
        if resources is None or name not in resources:
            from tasker.resources.registry import ResourceUnavailable

            raise ResourceUnavailable(f"this worker has no resource `{name}` for the transaction")
        return resources[name]


def _not_committed(handler: str) -> Failure:
    message = f"the transaction of {handler} was not committed: it was stopped, or its connection was lost"
    return Failure(message, "transaction_lost", True, handler=handler)
