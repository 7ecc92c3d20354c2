"""Settings of the backend in the configuration."""

from __future__ import annotations

from tasker.settings.table import Table, whole
from tasker_memory.backend import DEFAULT_MAX_DEPTH


class MemoryTable(Table):
    """Queues inside one process: for tests, and for applications without other processes."""

    max_depth: int = whole(DEFAULT_MAX_DEPTH, 1, 1_000_000_000, "Messages that each queue holds; then sending fails.")
