"""Messaging inside one process, for tests and single-process use. Chosen by the name `memory`."""

from __future__ import annotations

from tasker.contracts.messaging import BackendSettings
from tasker_memory.backend import DEFAULT_MAX_DEPTH, MemoryBackend, SystemClock

__all__ = ["MemoryBackend", "create"]


def create(settings: BackendSettings) -> MemoryBackend:
    """A new set of queues. `clock` has a `monotonic()` in seconds; `max_depth` bounds the messages of each queue."""
    return MemoryBackend(settings.get("clock") or SystemClock(), int(settings.get("max_depth", DEFAULT_MAX_DEPTH)))
