"""The faults that `TASKER_CHAOS` asks for, around the backend of a process."""

from __future__ import annotations

import os

from tasker.contracts.messaging import Backend


def with_faults(backend: Backend) -> Backend:
    """The backend, with faults when the variable is set. Raises `UsageError` when it is set wrongly."""
    if not (asked := os.environ.get("TASKER_CHAOS")):
        return backend
    from tasker.messaging.chaos import ChaosBackend, Faults

    return ChaosBackend(backend, Faults.parse(asked))
