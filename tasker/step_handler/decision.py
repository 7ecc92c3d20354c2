"""Step handler that makes a decision."""

from __future__ import annotations

from typing import ClassVar

from tasker.contracts.handler_roles import HandlerRole
from tasker.step_handler.base import StepHandler
from tasker.step_handler.mixins.decision import DecisionMixin


class DecisionHandler(DecisionMixin, StepHandler):
    """`StepHandler` with `DecisionMixin`."""

    handler_role: ClassVar[HandlerRole] = HandlerRole.DECISION

    @property
    def capabilities(self) -> list[str]:
        """Capabilities of a handler, plus those of decisions."""
        return [*super().capabilities, *self.decision_capabilities]
