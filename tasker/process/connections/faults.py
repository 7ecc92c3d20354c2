"""Fault injection around a process's backend, configured by `TASKER_CHAOS`."""

from __future__ import annotations

import os

from tasker.contracts.messaging import Backend


def with_faults(backend: Backend) -> Backend:
    """Return the backend, with faults when the variable is set. Raises `UsageError` for an invalid value."""
    if not (asked := os.environ.get("TASKER_CHAOS")):
        return backend
    from tasker.messaging.chaos import ChaosBackend, Faults

    return ChaosBackend(backend, Faults.parse(asked))
