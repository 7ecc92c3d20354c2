"""Messaging inside one process, for tests and single-process use. Chosen by the name `memory`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tasker.contracts.messaging import BackendSettings, known_settings
from tasker.errors import MessagingError
from tasker_memory.backend import DEFAULT_MAX_DEPTH, MemoryBackend, SystemClock

if TYPE_CHECKING:
    from tasker.contracts.settings import Table

__all__ = ["MemoryBackend", "create", "settings_table"]


def create(settings: BackendSettings) -> MemoryBackend:
    """A new set of queues. `clock` has a `monotonic()` in seconds; `max_depth` bounds the messages of each queue.

    Raises `MessagingError` for unknown settings; `channel`, the engine's database, is of no use here.
    """
    settings = known_settings("memory", settings, ["clock", "max_depth"])
    max_depth = settings.get("max_depth", DEFAULT_MAX_DEPTH)
    if type(max_depth) is not int or max_depth < 1:  # True is no number here
        raise MessagingError("memory needs a whole number from 1 as max_depth", retryable=False)
    return MemoryBackend(settings.get("clock") or SystemClock(), max_depth)


def settings_table() -> type[Table]:
    """What `[common.queues.memory]` may hold."""
    from tasker_memory.table import MemoryTable

    return MemoryTable
