"""Schemas of error answers."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel


class ErrorBody(BaseModel):
    """Published form of an error."""

    code: str
    message: str
    retry_after_seconds: int | None = None


class Place(BaseModel):
    """Invalid part of a request: a JSON pointer into its body, or the kind and name of a parameter."""

    pointer: str
    message: str


class Problem(BaseModel):
    """Problem details (RFC 9457) together with the published form. `code` is stable; `hint` says what to do."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    code: str
    request_id: str
    hint: str | None = None
    errors: list[Place | dict[str, Any]] | None = None
    error: ErrorBody


MEANINGS = {
    400: "The request is malformed, or not possible in this state.",
    401: "The credentials are invalid.",
    403: "The caller may not do this.",
    404: "The resource does not exist.",
    408: "The request timed out.",
    409: "A task of this identity exists.",
    413: "The body is too large.",
    415: "The body is not announced as JSON.",
    421: "The request names an unknown host.",
    422: "The input does not fit.",
    429: "Too many requests of this client; retry after `Retry-After`.",
    500: "The server or its database failed.",
    503: "Overloaded, or the database is unavailable; retry after `Retry-After`.",
}
ALWAYS = (400, 401, 403, 408, 421, 429, 500, 503)
OF_BODIES = (413, 415)
"""Additional errors of an operation with a body."""


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the error answers of a route: the common ones and these."""
    return {status: refusal(status) for status in sorted({*ALWAYS, *statuses})}


def refusal(status: int) -> dict[str, Any]:
    """Return the description of one error answer."""
    content = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {"description": MEANINGS[status], "content": content}
