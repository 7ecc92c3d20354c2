"""Running one claimed step: on the loop, in a thread or in a child process, and what came of it."""

from __future__ import annotations

from tasker.execution.attempt.cancel import CancelFlag
from tasker.execution.attempt.placing import Waits
from tasker.execution.attempt.runner import AttemptRunner
from tasker.execution.attempt.values import (
    Attempt,
    AttemptEnd,
    Cancelled,
    Checkpoint,
    ClaimWrites,
    Lost,
    Released,
    Unplaced,
    Unreported,
)

__all__ = [
    "Attempt",
    "AttemptEnd",
    "AttemptRunner",
    "CancelFlag",
    "Cancelled",
    "Checkpoint",
    "ClaimWrites",
    "Lost",
    "Released",
    "Unplaced",
    "Unreported",
    "Waits",
]
