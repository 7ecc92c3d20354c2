"""Running attempts while somebody looks on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

from tasker.execution.attempt.runner import AttemptRunner
from tasker.execution.attempt.values import Attempt, AttemptEnd, Checkpoint, ClaimWrites


class Observer(Protocol):
    """Hears of attempts, on the worker's loop: it must be quick and must not raise."""

    def received(self, attempt: Attempt) -> None:
        """An attempt begins."""
        ...

    def saved(self, attempt: Attempt, position: Checkpoint) -> None:
        """Its handler yielded, and the position is saved."""
        ...

    def ended(self, attempt: Attempt, end: AttemptEnd) -> None:
        """It ended; what came of it is about to be stored."""
        ...


class ObservedRunner(AttemptRunner):
    """An `AttemptRunner` that tells an observer. Other parameters as there."""

    def __init__(self, *, observer: Observer, **options: Any) -> None:
        super().__init__(**options)
        self._observer = observer

    async def run(self, attempt: Attempt) -> AttemptEnd:
        """As `AttemptRunner.run`."""
        self._observer.received(attempt)
        end = await super().run(self._watched(attempt))
        self._observer.ended(attempt, end)
        return end

    def _watched(self, attempt: Attempt) -> Attempt:
        return replace(attempt, writes=_Watched(attempt.writes, self._observer))


class _Watched:
    """The writes of an attempt, whose checkpoints the observer hears of."""

    def __init__(self, writes: ClaimWrites, observer: Observer) -> None:
        self._observer, self._writes, self.begin = observer, writes, writes.begin

    async def save(self, attempt: Attempt, position: Checkpoint) -> Mapping[str, Any] | None:
        saved = await self._writes.save(attempt, position)
        if saved is not None:
            self._observer.saved(attempt, position)
        return saved
