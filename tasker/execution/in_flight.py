"""Claims that this process runs, their release, and writes that count only with the current token."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

from tasker.dataclasses import dataclass
from tasker.engine.calls import Engine
from tasker.execution.attempt.attempt import (
    Attempt,
    AttemptCancelFlag,
    AttemptCancelled,
    AttemptTask,
    Checkpoint,
    ClaimLost,
    ClaimReleased,
)
from tasker.execution.settings import WorkerSettings
from tasker.handlers.claims import KEPT_EVENTS, Claim, Suspension


@dataclass(slots=True, eq=False)
class InFlightClaim:
    """A claim of this worker, from its start until its result is stored."""

    claim: Claim
    handler: str
    cancel: AttemptCancelFlag = field(default_factory=AttemptCancelFlag)
    task: AttemptTask | None = None
    ended: bool = False


class InFlightClaims:
    """The claims of a worker, by step."""

    def __init__(self) -> None:
        self._in_hand: dict[str, InFlightClaim] = {}
        self._end: type[ClaimLost] | type[ClaimReleased] | None = None
        """Outcome of claims that arrive after `stop_all`."""

    def __len__(self) -> int:
        return len(self._in_hand)

    def take(self, running: InFlightClaim) -> None:
        """Add a claim. After `stop_all` its handler does not start."""
        self._in_hand[running.claim.step_uuid] = running
        if self._end is not None:
            running.cancel.set(self._end)

    def has(self, step: str, token: int) -> bool:
        """Return True while this claim is in flight here and its handler was not stopped."""
        running = self._in_hand.get(step)
        return running is not None and running.claim.token == token and not running.cancel.is_set()

    def pairs(self) -> list[tuple[str, int]]:
        """Return the (step, token) pairs. May be called from any thread."""
        return [(step, running.claim.token) for step, running in list(self._in_hand.items())]

    def by_namespace(self) -> Counter[str]:
        """Return the number of claims per namespace."""
        return Counter(running.claim.namespace for running in self._in_hand.values())

    def in_turn(self, loop: asyncio.AbstractEventLoop) -> str | None:
        """Describe the step whose handler the loop runs at this moment. May be called from any thread."""
        task = asyncio.current_task(loop)
        for running in list(self._in_hand.values()):
            if task is not None and running.task is task:
                return _described(running.claim, running.handler)
        return None

    def canceller_of(self, attempt: InFlightClaim) -> str:
        """Return a description of the code that cancelled the asyncio task of this attempt."""
        claim = None if attempt.task is None else attempt.task.cancelled_by
        if claim is None:
            return "code outside of handlers, or the end of the event loop"
        if claim.step_uuid == attempt.claim.step_uuid:
            return "its own handler"
        running = self._in_hand.get(claim.step_uuid)
        return _described(claim, running.handler if running else "")

    def discard(self, claims: Sequence[Claim]) -> None:
        """Forget these claims, whose results are stored or which were lost. The next attempt may run here."""
        for claim in claims:
            if (running := self._in_hand.get(claim.step_uuid)) and running.claim.token == claim.token:
                del self._in_hand[claim.step_uuid]

    def stop_steps(
        self, steps: Sequence[str], end: type[ClaimLost] | type[AttemptCancelled] | type[ClaimReleased] = ClaimLost
    ) -> None:
        """Stop the handlers of these steps; their results no longer count."""
        for step in steps:
            if (running := self._in_hand.get(step)) and not running.ended:
                running.cancel.set(end)

    def stop_lost(self, pairs: Sequence[tuple[str, int]]) -> None:
        """Stop the handlers of these (step, token) pairs, not those of other attempts of the same steps."""
        self.stop_steps(
            [step for step, token in pairs if (running := self._in_hand.get(step)) and running.claim.token == token]
        )

    def stop_task(self, task_uuid: str) -> None:
        """Stop every handler that runs for a cancelled task."""
        self.stop_steps(
            [step for step, running in self._in_hand.items() if running.claim.task_uuid == task_uuid], AttemptCancelled
        )

    def stop_all(self, end: type[ClaimLost] | type[ClaimReleased]) -> None:
        """Stop every handler, and those of claims whose answer is still under way.

        With `ClaimReleased` their steps are released without using an attempt.
        """
        self._end = end
        self.stop_steps(list(self._in_hand), end)

    def wait_until_idle(self) -> None:
        """Allow handlers of new claims to run again after `stop_all`."""
        self._end = None

    async def drain(self) -> None:
        """Return when no handler runs any more."""
        while tasks := [running.task for running in self._in_hand.values() if running.task and not running.task.done()]:
            await asyncio.wait(tasks)


@dataclass(frozen=True, slots=True)
class ReleasedClaim:
    """A claim that is released without using an attempt; `note` has the reason, `delay_ms` defers its step.

    `snoozes`: the handler asked for the delay, and may do so that often; `state` is for its next call. `suspension`:
    the handler waits for an event.
    """

    claim: Claim
    note: Mapping[str, str]
    delay_ms: int | None = None
    snoozes: int | None = None
    state: Mapping[str, Any] | None = None
    suspension: Suspension | None = None


def _described(claim: Claim, handler: str) -> str:
    of = f"handler {handler}, step" if handler else "the handler of step"
    return f"{of} {claim.name} of task {claim.task_uuid}"


class FencedWrites:
    """Implementation of `ClaimWrites`. All methods raise `DatabaseUnavailable`.

    `on_saved(task_uuid)` is called before each save of a position.
    """

    def __init__(self, engine: Engine, settings: WorkerSettings, on_saved: Callable[[str], None]) -> None:
        self._engine, self._settings, self._on_saved = engine, settings, on_saved

    async def begin(self, attempt: Attempt) -> bool:
        """Restart the step's time as its handler starts (`tasker.begin_v1`); return False if the claim was lost."""
        return not (await self._engine.read("begin", self._fence(attempt))).get("lost")

    async def save(self, attempt: Attempt, position: Checkpoint) -> Mapping[str, Any] | None:
        """Save a position (see `tasker.checkpoint_v1`)."""
        self._on_saved(attempt.claim.task_uuid)
        saved: dict[str, Any] = {
            "cursor": position.cursor,
            "items_processed": position.items_processed,
            "accumulated_results": position.accumulated_results,
        }
        if position.events:
            saved[KEPT_EVENTS] = [event.to_json() for event in position.events]
        answer = await self._engine.read("checkpoint", {**self._fence(attempt), **saved})
        return answer.get("checkpoint")

    async def lock(self, attempt: Attempt, action: str, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Take, renew or release a lock (`tasker.take_lock_v1`)."""
        claim = attempt.claim
        fence = {"worker": claim.worker, "step": claim.step_uuid, "token": claim.token}
        match action:
            case "take":
                return await self._engine.read("take_lock", {**fields, **fence})
            case "renew":
                return await self._engine.read("renew_lock", fields)
            case _:
                return await self._engine.read("release_lock", fields)

    async def memo(self, attempt: Attempt, action: str, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Recall or remember a result (`tasker.recall_memo_v1`)."""
        if action == "recall":
            return await self._engine.read("recall_memo", fields)
        return await self._engine.read("remember_memo", fields)

    async def children(self, attempt: Attempt, page: Mapping[str, Any]) -> Mapping[str, Any]:
        """Read a page of child tasks of the attempt's task."""
        return await self._engine.read("children", {"task": attempt.claim.task_uuid, **page})

    def _fence(self, attempt: Attempt) -> dict[str, Any]:
        claim, seconds = attempt.claim, attempt.step.timeout_seconds
        return {
            "worker": claim.worker,
            "step": claim.step_uuid,
            "token": claim.token,
            "timeout_ms": self._settings.dispatch.handler_timeout_ms if seconds is None else int(seconds * 1000),
            "grace_ms": self._settings.lease.grace_ms,
        }
