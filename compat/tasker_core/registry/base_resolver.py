"""Base class of resolvers: the engine's own, so that custom resolvers work in the engine's chain."""

from __future__ import annotations

from tasker.handlers.registry.resolver import BaseResolver

__all__ = ["BaseResolver"]
