"""Step handler that calls HTTP APIs."""

from __future__ import annotations

from tasker.handlers.http.response import APIMixin
from tasker.handlers.step_handler import StepHandler


class ApiHandler(APIMixin, StepHandler):
    """`StepHandler` with `APIMixin`: set `base_url` and call `self.get(...)` or `await self.aget(...)`."""

    @property
    def capabilities(self) -> list[str]:
        """Capabilities of a handler, plus those of API calls."""
        return [*super().capabilities, *self.api_capabilities]


ApiStepHandler = APIHandler = ApiHandler
