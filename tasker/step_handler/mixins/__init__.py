"""Mixins for step handlers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tasker.named import names_of

if TYPE_CHECKING:
    from tasker.step_handler.mixins.api import APIMixin, ApiResponse
    from tasker.step_handler.mixins.decision import DecisionMixin

__all__ = ["APIMixin", "ApiResponse", "DecisionMixin"]

__getattr__ = names_of(
    __name__,
    {
        "api": "APIMixin ApiResponse",
        "decision": "DecisionMixin",
    },
)
