"""One-letter codes of states, used by the history to store paths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tasker.lifecycle.machines.step import StepState
from tasker.lifecycle.machines.task import TaskState

_S, _T = StepState, TaskState

LETTERS: Final[Mapping[str, str]] = {
    _S.PENDING: "P",
    _S.ENQUEUED: "E",
    _S.IN_PROGRESS: "I",
    _S.ENQUEUED_FOR_ORCHESTRATION: "O",
    _S.ENQUEUED_AS_ERROR_FOR_ORCHESTRATION: "X",
    _S.WAITING_FOR_RETRY: "W",
    _S.COMPLETE: "C",
    _S.ERROR: "F",
    _S.CANCELLED: "K",
    _S.RESOLVED_MANUALLY: "R",
    _T.INITIALIZING: "N",
    _T.ENQUEUING_STEPS: "Q",
    _T.STEPS_IN_PROCESS: "S",
    _T.EVALUATING_RESULTS: "V",
    _T.WAITING_FOR_DEPENDENCIES: "D",
    _T.BLOCKED_BY_FAILURES: "B",
}
"""Steps and tasks share the letters of states with equal names. A stored letter never changes its meaning."""
