"""Context of an event: its step."""

from __future__ import annotations

from typing import Any

from tasker.handlers.events.publisher import StepEventContext as EngineContext


class StepEventContext(EngineContext):
    """Step of an event; `step_name` is the name of its handler."""

    @classmethod
    def from_step_context(
        cls, step_context: Any, result: dict[str, Any] | None = None, metadata: dict[str, Any] | None = None
    ) -> StepEventContext:
        """Create the context of an event about the step that a handler ran."""
        known = EngineContext.from_step_context(step_context, result, metadata)
        return cls(**{**dict(known), "step_name": step_context.handler_name})
