"""Protection against cross-site request forgery.

A form carries a token that its browser also keeps in a cookie: another site knows neither. In addition, a request whose
`Sec-Fetch-Site` header names another site is refused.
"""

from __future__ import annotations

import re
from secrets import compare_digest, token_urlsafe

from fastapi import Request
from starlette.responses import Response

from tasker.errors import NotPermitted
from tasker.web.cookies import set_cookie
from tasker.web.forms import Form

COOKIE, FIELD = "tasker_form", "form_token"
OWN = ("same-origin", "none")
_TOKEN = re.compile(r"[\w-]{43}")
STALE = "reload the page and send the form again: it was opened by another browser, or too long ago"


def token_of(request: Request) -> str:
    """Return the token of this browser, a new one if it has none."""
    if not hasattr(request.state, "form_token"):
        kept = request.cookies.get(COOKIE, "")
        request.state.form_token = kept if _TOKEN.fullmatch(kept) else token_urlsafe(32)
    token: str = request.state.form_token
    return token


def keep(request: Request, answer: Response) -> None:
    """Set the browser's token cookie."""
    if request.cookies.get(COOKIE) != token_of(request):
        set_cookie(request, answer, COOKIE, token_of(request))


def require_same_site(request: Request, form: Form) -> None:
    """Check that the form was opened on this site. Raises `NotPermitted` otherwise."""
    came_from = request.headers.get("sec-fetch-site", "same-origin")
    kept = request.cookies.get(COOKIE, "")
    fits = _TOKEN.fullmatch(kept) and compare_digest(kept, form.text(FIELD)) if form.text(FIELD).isascii() else False
    if came_from not in OWN or not fits:
        raise NotPermitted("this form was not opened on this page", hint=STALE)
