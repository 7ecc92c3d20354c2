"""Errors of talking to a server."""

from __future__ import annotations

from typing import Any

from tasker.errors.base import TaskerError


class ServerError(TaskerError):
    """Error raised if the server failed, or the responding program is not a Tasker server."""

    error_type = "server_error"


class ServerUnreachable(ServerError):
    """Error raised if the server cannot be reached, or its response was cut off.

    It is unknown whether a request that changes something was carried out, unless the connection was never made.
    """

    error_type = "server_unreachable"


class NotTasker(ServerError):
    """Error raised if the program that responds at that address is not Tasker's API."""

    retryable = False
    error_type = "not_tasker"


class RequestTimeout(ServerError):
    """Error raised if the server did not respond in time; it is unknown whether the request was carried out."""

    error_type = "request_timeout"


class TooManyRequests(ServerError):
    """Error raised if the server accepts no more requests or streams for `retry_after` seconds."""

    error_type = "too_many_requests"


class NotAuthenticated(ServerError):
    """Error raised if the credentials are missing or not accepted. `reason` is one of a few words."""

    retryable = False
    error_type = "unauthorized"

    def __init__(self, message: str, *, reason: str = "invalid_token", **fields: Any) -> None:
        super().__init__(message, **fields)
        self.reason = reason


class NotPermitted(ServerError):
    """Error raised if the caller is authenticated but lacks the permission."""

    retryable = False
    error_type = "forbidden"
