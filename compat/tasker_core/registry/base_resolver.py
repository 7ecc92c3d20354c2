"""What a resolver is; the engine's own class, so that a resolver takes its place in the engine's chain."""

from __future__ import annotations

from tasker.registry import BaseResolver

__all__ = ["BaseResolver"]
