"""An attempt runner that notifies an observer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

from tasker.execution.attempt.attempt import Attempt, AttemptEnd, Checkpoint, ClaimWrites
from tasker.execution.attempt.runner import AttemptRunner


class Observer(Protocol):
    """Observer of attempts, called on the worker's loop: its methods must be quick and must not raise."""

    def received(self, attempt: Attempt) -> None:
        """Handle the start of an attempt."""
        ...

    def saved(self, attempt: Attempt, position: Checkpoint) -> None:
        """Handle a checkpoint: the handler yielded, and the position is saved."""
        ...

    def ended(self, attempt: Attempt, end: AttemptEnd) -> None:
        """Handle the end of an attempt, before its outcome is stored."""
        ...


class ObservedRunner(AttemptRunner):
    """An `AttemptRunner` that notifies an observer. Other parameters are those of `AttemptRunner`."""

    def __init__(self, *, observer: Observer, **options: Any) -> None:
        super().__init__(**options)
        self._observer = observer

    async def run(self, attempt: Attempt) -> AttemptEnd:
        """Run the attempt as `AttemptRunner.run` does, and notify the observer of its start and end."""
        self._observer.received(attempt)
        end = await super().run(self._watched(attempt))
        self._observer.ended(attempt, end)
        return end

    def _watched(self, attempt: Attempt) -> Attempt:
        return replace(attempt, writes=_Watched(attempt.writes, self._observer))


class _Watched:
    """Writes of an attempt that notify the observer of checkpoints."""

    def __init__(self, writes: ClaimWrites, observer: Observer) -> None:
        self._observer, self._writes, self.begin = observer, writes, writes.begin

    async def save(self, attempt: Attempt, position: Checkpoint) -> Mapping[str, Any] | None:
        saved = await self._writes.save(attempt, position)
        if saved is not None:
            self._observer.saved(attempt, position)
        return saved
