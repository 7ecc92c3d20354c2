"""Settings of a worker by their plain names, whatever tables they are in."""

from __future__ import annotations

from typing import Any

from tasker.execution.settings import WorkerSettings
from tasker.settings.execution import Execution, Lease, WorkerExecution
from tasker.settings.queues import HandlerDispatch

NAMES = {"concurrency": "max_concurrent_handlers", "timeout_ms": "handler_timeout_ms", "window": "enqueue_window"}


def worker_settings(**values: Any) -> WorkerSettings:
    """Settings with these values, of any of its tables or of its own."""
    tables = {
        "dispatch": HandlerDispatch.for_single_process(),
        "lease": Lease(),
        "execution": WorkerExecution(),
        "limits": Execution(),
    }
    own = {}
    for name, value in values.items():
        setting = NAMES.get(name, name)
        table = next((table for table, kind in tables.items() if setting in kind.declared), None)
        if table is None:
            own[name] = value
        else:
            tables[table] = tables[table].replace(**{setting: value})
    return WorkerSettings(**tables, **own)  # type: ignore[arg-type]
