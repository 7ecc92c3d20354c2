"""Tasker in a program (`App`, `SyncApp`, `submit_in`), and the only place that creates and joins the objects of a
process.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tasker.app.app import App as App
    from tasker.app.sync_app import SyncApp as SyncApp
    from tasker.app.task_requester import TaskRequester as TaskRequester
    from tasker.app.transaction import submit_in as submit_in
    from tasker.app.transaction import submit_in_async as submit_in_async

__all__ = ["App", "SyncApp", "TaskRequester", "submit_in", "submit_in_async"]

_HOMES = {
    "App": "tasker.app.app",
    "SyncApp": "tasker.app.sync_app",
    "TaskRequester": "tasker.app.task_requester",
    "submit_in": "tasker.app.transaction",
    "submit_in_async": "tasker.app.transaction",
}


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})


def __getattr__(name: str) -> Any:
    """Import a public name lazily."""
    if name not in _HOMES:
        raise AttributeError(f"module 'tasker.app' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
