"""Bringing results: what finished while the previous write was under way goes in the next one (group commit)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from tasker.errors import DatabaseError
from tasker.execution.worker import GivenBack, Worker
from tasker.services.exchange import Advanced, Result, ResultSink

Release = Callable[[list[GivenBack]], Awaitable[None]]
BACKOFF_SECONDS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)


class Collector:
    """Takes finished attempts and writes them in batches; what the engine hands back starts at once.

    Parameters: `sink` stores results; `release` gives claims back; `on_advanced` sees every
    answer (tasks that ended, retries to come); `on_lost` hears that an answer of the database was lost.
    """

    def __init__(
        self,
        sink: ResultSink,
        release: Release,
        *,
        on_advanced: Callable[[Advanced], None],
        on_lost: Callable[[], None],
    ) -> None:
        self.worker: Worker | None = None
        self._sink, self._release = sink, release
        self._on_advanced, self._on_lost = on_advanced, on_lost
        self._results: list[Result] = []
        self._given_back: dict[str, GivenBack] = {}
        self._again: list[Result] = []
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._failures = 0

    def add(self, result: Result) -> None:
        """A finished attempt."""
        self._results.append(result)
        self._idle.clear()
        self._wake.set()

    def give_back(self, given_back: GivenBack) -> None:
        """A claim that must be released."""
        self._given_back[given_back.claim.step_uuid] = given_back
        self._idle.clear()
        self._wake.set()

    async def flushed(self) -> None:
        """Return when everything that was added so far is stored."""
        await self._idle.wait()

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            try:
                await self._flush()
                self._failures = 0
            except DatabaseError:
                await self._wait_for_database()
            if self._results or self._again or self._given_back:
                self._wake.set()
            else:
                self._idle.set()

    async def _flush(self) -> None:
        worker = self._worker()
        if self._given_back:
            await self._release_claims(worker)
        batch, self._results = self._results[: worker.settings.batch], self._results[worker.settings.batch :]
        again, self._again = self._again, []
        if not batch and not again:
            return
        reserved = worker.slots.reserve()
        used = 0
        try:
            advanced = await self._process(worker, batch, again, reserved)
            used = len(advanced.claims)
        except BaseException:
            self._results, self._again = batch + self._results, again
            raise
        finally:
            worker.slots.settle(reserved, used)
        self._finish(worker, batch + again, advanced)
        if advanced.claims:
            await worker.accept({}, advanced.claims)

    async def _process(self, worker: Worker, batch: list[Result], again: list[Result], slots: int) -> Advanced:
        """New results skip tasks that others hold; those that had to wait once now wait in the queue for the lock."""
        advanced = Advanced()
        if again:
            advanced = await self._sink.process(again, worker.caller(slots))
        if batch:
            more = await self._sink.process(batch, worker.caller(slots - len(advanced.claims)), wait=False)
            advanced = _merged(advanced, more)
        return advanced

    def _finish(self, worker: Worker, results: list[Result], advanced: Advanced) -> None:
        waiting = {result.outcome.claim.step_uuid for result in advanced.again}
        self._again += advanced.again
        worker.let_go([r.outcome.claim.step_uuid for r in results if r.outcome.claim.step_uuid not in waiting])
        worker.inputs.forget(advanced.finished)
        self._on_advanced(advanced)

    async def _release_claims(self, worker: Worker) -> None:
        given_back, self._given_back = self._given_back, {}
        try:
            await self._release(list(given_back.values()))
        except BaseException:
            self._given_back = given_back | self._given_back
            raise
        worker.let_go(list(given_back))

    async def _wait_for_database(self) -> None:
        self._on_lost()
        await asyncio.sleep(BACKOFF_SECONDS[min(self._failures, len(BACKOFF_SECONDS) - 1)])
        self._failures += 1

    def _worker(self) -> Worker:
        assert self.worker is not None, "the worker is set before `run`"
        return self.worker


def _merged(first: Advanced, second: Advanced) -> Advanced:
    second.claims = first.claims + second.claims
    second.finished |= first.finished
    second.again = first.again + second.again
    second.refused |= first.refused
    second.sent = _sum(first.sent, second.sent)
    delays = [ms for ms in (first.retry_in_ms, second.retry_in_ms) if ms is not None]
    second.retry_in_ms = min(delays) if delays else None
    return second


def _sum(first: Mapping[str, int], second: Mapping[str, int]) -> dict[str, int]:
    return {key: first.get(key, 0) + second.get(key, 0) for key in {*first, *second}}
