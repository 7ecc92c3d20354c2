"""Step handler for decisions."""

from __future__ import annotations

from tasker.handlers.handler_roles import HandlerRole
from tasker_core.step_handler.base import StepHandler
from tasker_core.step_handler.mixins.decision import DecisionMixin

__all__ = ["DecisionHandler"]


class DecisionHandler(DecisionMixin, StepHandler):
    """`StepHandler` with `DecisionMixin`."""

    handler_role = HandlerRole.DECISION

    @property
    def capabilities(self) -> list[str]:
        """Capabilities of a handler, and of decisions."""
        return [*super().capabilities, *self.decision_capabilities]
