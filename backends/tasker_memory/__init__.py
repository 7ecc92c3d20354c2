"""Messaging within one process, for tests and single-process use. Selected by the name `memory`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tasker.errors import MessagingError
from tasker.messaging.port import known_settings
from tasker.settings.addresses import BackendSettings

if TYPE_CHECKING:
    from tasker.settings.table import Table
    from tasker_memory.backend import MemoryBackend

__all__ = ["MemoryBackend", "create", "settings_table"]


def create(settings: BackendSettings) -> MemoryBackend:
    """Return a backend with empty queues.

    `clock` has a `monotonic()` in seconds; `max_depth` is the maximum number of messages of each queue. Raises
    `MessagingError` for unknown settings; `channel`, the engine's database, is ignored.
    """
    from tasker_memory.backend import DEFAULT_MAX_DEPTH, MemoryBackend, SystemClock

    settings = known_settings("memory", settings, ["clock", "max_depth"])
    max_depth = settings.get("max_depth", DEFAULT_MAX_DEPTH)
    if type(max_depth) is not int or max_depth < 1:  # True is not accepted as a number
        raise MessagingError("memory needs a whole number from 1 as max_depth", retryable=False)
    return MemoryBackend(settings.get("clock") or SystemClock(), max_depth)


def settings_table() -> type[Table]:
    """Return the settings model of `[common.queues.memory]`."""
    from tasker_memory.table import MemoryTable

    return MemoryTable


def __getattr__(name: str) -> Any:
    """Import `MemoryBackend` on first use: every process imports this package for its variables (PEP 562)."""
    if name != "MemoryBackend":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tasker_memory.backend import MemoryBackend

    return MemoryBackend
