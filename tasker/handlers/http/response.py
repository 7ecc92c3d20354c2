"""Results of a step from HTTP responses, and `ApiMixin`."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from tasker.errors import StepExecutionError
from tasker.handlers.http.client import ApiClient
from tasker.handlers.results import StepHandlerResult

if TYPE_CHECKING:
    import httpx

__all__ = ["APIMixin", "ApiResponse"]

RETRYABLE_STATUS = frozenset({408, 429, 500, 501, 502, 503, 504})

ERROR_TYPES = {
    400: "validation_error",
    401: "authentication_error",
    403: "authorization_error",
    404: "not_found",
    408: "timeout",
    422: "validation_error",
    429: "rate_limit_error",
}


class ApiResponse:
    """A response with its body read: the decoded JSON, else text.

    `response["email"]` and `response.json()` raise `StepExecutionError` with the right classification if the status is
    not 2xx, so that a handler never uses the body of a failed call by accident. `body` is always readable.
    """

    def __init__(self, response: httpx.Response, body: dict[str, Any] | str | None = None) -> None:
        self.response = response
        self.status_code = response.status_code
        self.headers = dict(response.headers)
        self.body: Any = _body(response) if body is None else body

    @property
    def ok(self) -> bool:
        """True for status 200 to 299."""
        return 200 <= self.status_code < 300

    @property
    def is_client_error(self) -> bool:
        """True for status 400 to 499."""
        return 400 <= self.status_code < 500

    @property
    def is_server_error(self) -> bool:
        """True for status 500 to 599."""
        return 500 <= self.status_code < 600

    @property
    def is_retryable(self) -> bool:
        """True for status 408, 429 and 500 to 504."""
        return self.status_code in RETRYABLE_STATUS

    @property
    def retry_after(self) -> int | None:
        """Seconds to wait according to `Retry-After`, or None; a date is measured from the response's own `Date`."""
        value = self.response.headers.get("retry-after")
        if value is None:
            return None
        return int(value) if value.strip().isdigit() else _seconds_until(value, self.response.headers.get("date"))

    @property
    def error_type(self) -> str:
        """The `error_type` of a failure with this status."""
        fallback = "service_unavailable" if self.is_server_error else "http_error"
        return ERROR_TYPES.get(self.status_code, fallback)

    def json(self) -> Any:
        """Return the body. Raises `StepExecutionError` unless the status is 2xx."""
        self.raise_for_status()
        return self.body

    def __getitem__(self, key: str) -> Any:
        return self.json()[key]

    def raise_for_status(self) -> None:
        """Raise `StepExecutionError` unless the status is 2xx."""
        if not self.ok:
            raise StepExecutionError(
                self.describe(),
                self.error_type,
                self.is_retryable,
                error_code=f"HTTP_{self.status_code}",
                retry_after=self.retry_after,
                metadata=self.failure_metadata(),
            )

    def describe(self) -> str:
        """Return method, URL without query, and status in one line."""
        request = self.response.request
        return f"{request.method} {request.url.copy_with(query=None)} answered {self.status_code}"

    def failure_metadata(self) -> dict[str, Any]:
        """Return the metadata of a failure: status, `Retry-After`, and the first 1000 characters of the body."""
        metadata = {
            "status_code": self.status_code,
            "retry_after": self.retry_after,
            "body": str(self.body)[:1000] or None,
        }
        return {key: value for key, value in metadata.items() if value is not None}

    def to_dict(self) -> dict[str, Any]:
        """Return status, headers (without cookies) and body as plain data."""
        headers = {key: value for key, value in self.headers.items() if key.lower() != "set-cookie"}
        return {"status_code": self.status_code, "headers": headers, "body": self.body}


def _body(response: httpx.Response) -> Any:
    if "json" not in response.headers.get("content-type", ""):
        return response.text
    try:
        return response.json()
    except ValueError:
        return response.text


def _seconds_until(date: str, now: str | None) -> int | None:
    try:
        start = parsedate_to_datetime(now) if now else datetime.now(UTC)
        return max(0, math.ceil((parsedate_to_datetime(date) - start).total_seconds()))
    except (ValueError, TypeError):
        return None


class APIMixin(ApiClient[ApiResponse]):
    """Adds HTTP methods. Paths are relative to `base_url`; timeouts are in seconds.

    Every method returns an `ApiResponse` for every status. A failed connection raises httpx's own exception, which
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
