"""HTTP calls of a handler, sync and async, and their conversion into results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tasker.step_handler.mixins.api_client import ApiClient
from tasker.step_handler.mixins.api_response import ApiResponse
from tasker.types import StepHandlerResult

if TYPE_CHECKING:
    import httpx

__all__ = ["APIMixin", "ApiResponse"]


class APIMixin(ApiClient[ApiResponse]):
    """Adds HTTP methods. Paths are relative to `base_url`; timeouts are in seconds.

    Every method returns an `ApiResponse` whatever the status. A failed connection raises httpx's own exception, which
    becomes a retryable failure (`network_error`, `timeout`) unless the handler catches it. `get` and the other sync
    methods block and are for plain handlers; `aget` and the other async methods are for `async def call`.
    """

    def _api_answer(self, response: httpx.Response) -> ApiResponse:
        return ApiResponse(response)

    def api_success(
        self, response: ApiResponse, result: dict[str, Any] | None = None, include_response: bool = True
    ) -> StepHandlerResult:
        """Return a success with the response's body, or with `result`.

        `include_response` stores the status in the metadata. Raises `StepExecutionError` if the status is not 2xx.
        """
        body = response.json()
        plain = body if isinstance(body, dict) else {"body": body}
        metadata = {"status_code": response.status_code} if include_response else None
        return StepHandlerResult.success(plain if result is None else result, metadata)

    def api_failure(self, response: ApiResponse, message: str | None = None) -> StepHandlerResult:
        """Return a failure classified by the status; `Retry-After` is honoured."""
        return StepHandlerResult.failure(
            message or response.describe(),
            response.error_type,
            response.is_retryable,
            response.failure_metadata(),
            f"HTTP_{response.status_code}",
        )

    def connection_error(self, error: Exception, context: str | None = None) -> StepHandlerResult:
        """Return a retryable failure for a connection that failed or broke; `context` describes the operation."""
        return _unreachable("connection failed", "network_error", error, context)

    def timeout_error(self, error: Exception, context: str | None = None) -> StepHandlerResult:
        """Return a retryable failure for a response that did not arrive in time."""
        return _unreachable("timed out", "timeout", error, context)


def _unreachable(what: str, error_type: str, error: Exception, context: str | None) -> StepHandlerResult:
    prefix = f"{context}: " if context else ""
    metadata = {"exception_type": type(error).__name__}
    return StepHandlerResult.failure(f"{prefix}{what}: {error}", error_type, True, metadata)
