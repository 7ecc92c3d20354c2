"""Message about a completed action, shown once on the next page."""

from __future__ import annotations

from urllib.parse import quote, unquote

from fastapi import Request
from starlette.responses import Response

from tasker.server.web.session import drop_cookie, set_cookie

COOKIE = "tasker_message"
LONGEST = 500


def say(request: Request, answer: Response, message: str) -> None:
    """Show a message on the next page."""
    set_cookie(request, answer, COOKIE, quote(message[:LONGEST]))


def said(request: Request) -> str:
    """Return the message of the previous page, empty if there is none."""
    return unquote(request.cookies.get(COOKIE, ""))[:LONGEST]


def forget(request: Request, answer: Response) -> None:
    """Delete the message after it was shown."""
    if COOKIE in request.cookies:
        drop_cookie(request, answer, COOKIE)
