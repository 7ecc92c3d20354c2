"""Step handler that calls HTTP APIs."""

from __future__ import annotations

from tasker.step_handler.base import StepHandler
from tasker.step_handler.mixins.api import APIMixin


class ApiHandler(APIMixin, StepHandler):
    """`StepHandler` with `APIMixin`: set `base_url` and call `self.get(...)` or `await self.aget(...)`."""

    @property
    def capabilities(self) -> list[str]:
        """Capabilities of a handler, plus those of API calls."""
        return [*super().capabilities, *self.api_capabilities]


ApiStepHandler = APIHandler = ApiHandler
