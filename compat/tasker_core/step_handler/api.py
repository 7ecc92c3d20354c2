"""Step handler that calls HTTP APIs."""

from __future__ import annotations

from tasker_core.step_handler.base import StepHandler
from tasker_core.step_handler.mixins.api import APIMixin, ApiResponse

__all__ = ["ApiHandler", "ApiResponse"]


class ApiHandler(APIMixin, StepHandler):
    """`StepHandler` with `APIMixin`."""

    @property
    def capabilities(self) -> list[str]:
        """Capabilities of a handler, and of API calls."""
        return [*super().capabilities, *self.api_capabilities]
