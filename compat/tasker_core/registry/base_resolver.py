"""Base class of resolvers: the engine's own, so that custom resolvers work in the engine's chain."""

from __future__ import annotations

from tasker.registry import BaseResolver

__all__ = ["BaseResolver"]
