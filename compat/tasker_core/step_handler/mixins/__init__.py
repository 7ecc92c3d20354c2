"""Mixins for step handlers."""

from __future__ import annotations

from tasker_core.step_handler.mixins.api import APIMixin, ApiResponse
from tasker_core.step_handler.mixins.decision import DecisionMixin

__all__ = ["APIMixin", "ApiResponse", "DecisionMixin"]
