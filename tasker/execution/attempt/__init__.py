"""Execution of one claimed step: on the event loop, in a thread or in a child process, and its outcome."""

from __future__ import annotations

from tasker.execution.attempt.cancel import AttemptCancelFlag
from tasker.execution.attempt.placing import CapacityWaits
from tasker.execution.attempt.runner import AttemptRunner
from tasker.execution.attempt.values import (
    Attempt,
    AttemptCancelled,
    AttemptEnd,
    Checkpoint,
    ClaimLost,
    ClaimReleased,
    ClaimWrites,
    NoCapacity,
    UnreportedEnd,
)

__all__ = [
    "Attempt",
    "AttemptCancelFlag",
    "AttemptCancelled",
    "AttemptEnd",
    "AttemptRunner",
    "CapacityWaits",
    "Checkpoint",
    "ClaimLost",
    "ClaimReleased",
    "ClaimWrites",
    "NoCapacity",
    "UnreportedEnd",
]
