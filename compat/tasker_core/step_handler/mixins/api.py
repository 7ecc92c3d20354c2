"""HTTP calls of a handler, and their conversion to results with the error types of tasker_core."""

from __future__ import annotations

import contextlib
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from tasker.handlers.http.client import ApiClient
from tasker.handlers.http.response import ApiResponse as EngineResponse
from tasker_core.answering import Answering
from tasker_core.types import StepHandlerResult

if TYPE_CHECKING:
    import httpx

__all__ = ["APIMixin", "ApiResponse"]

CLIENT_ERROR_CODES = range(400, 500)
SERVER_ERROR_CODES = range(500, 600)
NON_RETRYABLE_STATUS_CODES = {400, 401, 403, 404, 405, 406, 410, 422}
RETRYABLE_STATUS_CODES = {408, 429, 500, 502, 503, 504}

UNREADABLE_RETRY_AFTER = 60
"""Seconds to wait if `Retry-After` is not a number."""

ERROR_TYPES = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    408: "request_timeout",
    409: "conflict",
    410: "gone",
    422: "unprocessable_entity",
    429: "rate_limited",
    500: "internal_server_error",
    502: "bad_gateway",
    503: "service_unavailable",
    504: "gateway_timeout",
}
PROBLEM_KEYS = ("error", "message", "detail", "error_message", "msg")
"""Keys of error messages in bodies of services, in the order of preference."""


class ApiResponse(EngineResponse):
    """Response with its body; `raw_response` is httpx's own."""

    def __init__(self, response: httpx.Response, body: dict[str, Any] | str | None = None) -> None:
        super().__init__(response, body)
        self.raw_response = response

    @property
    def is_retryable(self) -> bool:
        """True for the status 408, 429, 500, 502, 503, 504."""
        return self.status_code in RETRYABLE_STATUS_CODES

    @property
    def retry_after(self) -> int | None:
        """Seconds that the server asks to wait; 60 if the header is invalid."""
        value = self.headers.get("retry-after")
        if value is None:
            return None
        try:
            return int(value)
        except ValueError:
            return UNREADABLE_RETRY_AFTER

    @property
    def error_type(self) -> str:
        """The `error_type` of a failure with this status."""
        if self.is_client_error or self.is_server_error:
            return ERROR_TYPES.get(self.status_code, "client_error" if self.is_client_error else "server_error")
        return "http_error"

    def problem(self) -> str:
        """Return the error message in the body, else the status's phrase."""
        body = self.body if isinstance(self.body, dict) else {}
        for detail in (body[key] for key in PROBLEM_KEYS if key in body):
            text = detail.get("message") if isinstance(detail, dict) else detail
            if isinstance(text, str):
                return text
        known = self.status_code in ERROR_TYPES
        return HTTPStatus(self.status_code).phrase if known else "HTTP Error"

    def to_dict(self) -> dict[str, Any]:
        """Return status, headers and body as plain data."""
        return {"status_code": self.status_code, "headers": self.headers, "body": self.body}


class APIMixin(ApiClient[ApiResponse], Answering):
    """Mixin with methods for HTTP requests. Paths are relative to `base_url`; timeouts are in seconds."""

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # httpx may be gone at the end of the interpreter
            self.close()

    def _api_answer(self, response: httpx.Response) -> ApiResponse:
        return ApiResponse(response)

    def api_success(
        self, response: EngineResponse, result: dict[str, Any] | None = None, include_response: bool = True
    ) -> StepHandlerResult:
        """Return a success with `result`, or with the response's body (under `data` if it is not a mapping)."""
        body = response.body if isinstance(response.body, dict) else {"data": response.body}
        metadata = {"status_code": response.status_code, "headers": response.headers} if include_response else {}
        return self.success(body if result is None else result, metadata=metadata)

    def api_failure(self, response: EngineResponse, message: str | None = None) -> StepHandlerResult:
        """Return a failure with the response's error type, retryable if the status is."""
        known = response if isinstance(response, ApiResponse) else ApiResponse(response.response, response.body)
        optional = {"retry_after_seconds": known.retry_after, "retry_after": known.retry_after}
        metadata = {
            "status_code": known.status_code,
            "headers": known.headers,
            **{key: value for key, value in optional.items() if value is not None},
            **({"response_body": known.body} if known.body else {}),
        }
        text = message or f"HTTP {known.status_code}: {known.problem()}"
        return self.failure(text, known.error_type, known.is_retryable, metadata)

    def connection_error(self, error: Exception, context: str | None = None) -> StepHandlerResult:
        """Return a retryable failure for a connection that broke or could not be made; `context` is the operation."""
        return self._unreachable("Connection error", "connection_error", error, context)

    def timeout_error(self, error: Exception, context: str | None = None) -> StepHandlerResult:
        """Return a retryable failure for an answer that did not come in time."""
        return self._unreachable("Request timeout", "timeout", error, context)

    def _unreachable(self, what: str, error_type: str, error: Exception, context: str | None) -> StepHandlerResult:
        during = f" while {context}" if context else ""
        metadata = {"exception_type": type(error).__name__}
        return self.failure(f"{what}{during}: {error}", error_type, True, metadata)
