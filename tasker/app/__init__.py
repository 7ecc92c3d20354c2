"""Composition roots: the only place where concrete objects are made and joined."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tasker.app.embedded_app import App as App

__all__ = ["App"]


def __getattr__(name: str) -> Any:
    """`App`, imported when it is first asked for."""
    if name != "App":
        raise AttributeError(f"module 'tasker.app' has no attribute {name!r}")
    from tasker.app.embedded_app import App

    return App
