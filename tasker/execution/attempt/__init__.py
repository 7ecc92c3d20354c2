"""Running one claimed step: on the loop, in a thread or in a child process, and what came of it."""

from __future__ import annotations

from tasker.execution.attempt.cancel import AttemptCancelFlag
from tasker.execution.attempt.placing import CapacityWaits
from tasker.execution.attempt.runner import AttemptRunner
from tasker.execution.attempt.values import (
    Attempt,
    AttemptEnd,
    AttemptCancelled,
    Checkpoint,
    ClaimWrites,
    ClaimLost,
    ClaimReleased,
    NoCapacity,
    UnreportedEnd,
)

__all__ = [
    "Attempt",
    "AttemptEnd",
    "AttemptRunner",
    "AttemptCancelFlag",
    "AttemptCancelled",
    "Checkpoint",
    "ClaimWrites",
    "ClaimLost",
    "ClaimReleased",
    "NoCapacity",
    "UnreportedEnd",
    "CapacityWaits",
]
