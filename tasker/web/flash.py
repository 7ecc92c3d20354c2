"""What was done, said once on the next page."""

from __future__ import annotations

from urllib.parse import quote, unquote

from fastapi import Request
from starlette.responses import Response

from tasker.web.cookies import drop_cookie, set_cookie

COOKIE = "tasker_message"
LONGEST = 500


def say(request: Request, answer: Response, message: str) -> None:
    """Show it on the page that comes next."""
    set_cookie(request, answer, COOKIE, quote(message[:LONGEST]))


def said(request: Request) -> str:
    """What the page before wants to be said; empty: nothing."""
    return unquote(request.cookies.get(COOKIE, ""))[:LONGEST]


def forget(request: Request, answer: Response) -> None:
    """It has been shown."""
    if COOKIE in request.cookies:
        drop_cookie(request, answer, COOKIE)
