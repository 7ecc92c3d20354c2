"""What a client of a Tasker server reports by itself; all else is the error that the server had."""

from __future__ import annotations

from typing import Any

from tasker.errors.base import TaskerError


class ServerError(TaskerError):
    """A server failed, or what answers is no Tasker server."""

    error_type = "server_error"


class ServerUnreachable(ServerError):
    """The server cannot be reached, or the answer was cut off; of a request that changes something it is not known
    whether it was carried out, unless the connection was never made."""

    error_type = "server_unreachable"


class NotTasker(ServerError):
    """Something answers at that address that is not Tasker's interface."""

    retryable = False
    error_type = "not_tasker"


class RequestTimeout(ServerError):
    """The server did not answer in time; whether the request was carried out is not known."""

    error_type = "request_timeout"


class TooManyRequests(ServerError):
    """The server takes no more requests, or streams, for now; `retry_after` says for how many seconds."""

    error_type = "too_many_requests"


class NotAuthenticated(ServerError):
    """The server knows nobody by these credentials, or none were sent. `reason` is one of a few words."""

    retryable = False
    error_type = "unauthorized"

    def __init__(self, message: str, *, reason: str = "invalid_token", **fields: Any) -> None:
        super().__init__(message, **fields)
        self.reason = reason


class NotPermitted(ServerError):
    """Who asks is known and may not do this."""

    retryable = False
    error_type = "forbidden"
