"""What lists are made of: tasks, their transitions, refused messages, processes, pauses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Self

from tasker.contracts.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TaskSummary:
    """A task in a list, with the numbers of its steps.

    `unserved` is the handler of a step that waits because no worker has it, `paused` the pause that holds a step.
    """

    task_uuid: str
    namespace: str
    template: str
    version: str
    status: str
    priority: int
    total: int
    done: int
    failed: int
    created_at: datetime
    completed_at: datetime | None
    unserved: str | None
    paused: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class HistoryItem:
    """Something in the history of a task (`step` is None) or of one of its steps."""

    kind: str
    step: str | None
    from_state: str | None
    to_state: str
    at: datetime
    sort_key: int
    worker: str | None
    attempt: int | None


@dataclass(frozen=True, slots=True)
class TransitionDetail(HistoryItem):
    """A change of state, with all that was noted of it."""

    metadata: Mapping[str, Any] | None
    execution_time_ms: int | None


@dataclass(frozen=True, slots=True)
class StepExtras:
    """What a step has beside its result: the `batch` that it was given, its last checkpoint; None: there is none."""

    batch: Any
    checkpoint: Any
    checkpointed_at: datetime | None


@dataclass(frozen=True, slots=True)
class RefusedMessage:
    """A message that nobody could use."""

    at: datetime
    queue: str
    reason: str
    message: Any


@dataclass(frozen=True, slots=True)
class ProcessRow:
    """A worker or an orchestrator: where it runs, what it serves, how it is.

    `in_hand` is how many steps it held at its last beat, `beat_age_ms` ago; `lease_left_ms` may be negative.
    """

    worker: str
    kind: str
    name: str | None
    host: str
    pid: int
    version: str
    state: str
    namespaces: Sequence[str]
    callables: Sequence[str]
    concurrency: int
    in_hand: int
    started_at: datetime
    beat_at: datetime
    lease_left_ms: int | None
    beat_age_ms: int


@dataclass(frozen=True, slots=True)
class Pause:
    """What is paused: a queue, a task, else a namespace, or a template or step of it; by whom, why and since when.

    `held` is how many ready steps, or messages of a queue, wait for its end; None when the provider does not answer.
    """

    namespace: str | None
    template: str | None
    step: str | None
    task: str | None
    queue: str | None
    actor: str
    reason: str
    paused_at: str
    held: int | None


@dataclass(frozen=True, slots=True)
class PauseChange:
    """Somebody paused or resumed (`action`) what `target` names."""

    action: str
    target: str
    actor: str
    reason: str
    created_at: str


@dataclass(frozen=True, slots=True)
class PauseList:
    """What is paused, the oldest first; and the log of pauses, the newest first."""

    pauses: Sequence[Pause]
    log: Sequence[PauseChange]

    @classmethod
    def parse(cls, answer: Mapping[str, Any]) -> Self:
        """The answer of `tasker.paused_v1`."""
        return cls(
            tuple(Pause(**each) for each in answer["pauses"]), tuple(PauseChange(**each) for each in answer["log"])
        )
