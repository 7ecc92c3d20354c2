"""An HTTP response, and what its status means for the step."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from tasker.errors import StepExecutionError

if TYPE_CHECKING:
    import httpx

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
    """A response with its body read: a mapping for a JSON object, else what the JSON holds, else text.

    `response["email"]` and `response.json()` raise `StepExecutionError` with the right classification when the
    status is not 2xx, so a body is never taken from a failed call by accident. `body` is always readable.
    """

    def __init__(self, response: httpx.Response, body: dict[str, Any] | str | None = None) -> None:
        self.response = response
        self.status_code = response.status_code
        self.headers = dict(response.headers)
        self.body: Any = _body(response) if body is None else body

    @property
    def ok(self) -> bool:
        """Status 200 to 299."""
        return 200 <= self.status_code < 300

    @property
    def is_client_error(self) -> bool:
        """Status 400 to 499."""
        return 400 <= self.status_code < 500

    @property
    def is_server_error(self) -> bool:
        """Status 500 to 599."""
        return 500 <= self.status_code < 600

    @property
    def is_retryable(self) -> bool:
        """Status 408, 429, 500 to 504."""
        return self.status_code in RETRYABLE_STATUS

    @property
    def retry_after(self) -> int | None:
        """Seconds that the server asks to wait; a date is measured from the response's own `Date`."""
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
        """The body of a successful response."""
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
        """One line: method, address, status."""
        request = self.response.request
        return f"{request.method} {request.url.copy_with(query=None)} answered {self.status_code}"

    def failure_metadata(self) -> dict[str, Any]:
        """What a failure should keep of the response."""
        found = {
            "status_code": self.status_code,
            "retry_after": self.retry_after,
            "body": str(self.body)[:1000] or None,
        }
        return {key: value for key, value in found.items() if value is not None}

    def to_dict(self) -> dict[str, Any]:
        """Status, headers (without cookies) and body as plain data."""
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
