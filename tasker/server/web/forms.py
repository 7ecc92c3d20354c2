"""Values that forms send, and protection from forged forms.

A form carries a token that its browser also keeps in a cookie: another site knows neither. In addition, a request whose
`Sec-Fetch-Site` header names another site is refused.
"""

from __future__ import annotations

import re
from secrets import compare_digest, token_urlsafe
from urllib.parse import parse_qs

from fastapi import Request
from starlette.responses import Response

from tasker.dataclasses import dataclass
from tasker.errors import NotPermitted, UsageError
from tasker.server.web.session import set_cookie

MOST_FIELDS = 2000
MEDIA_TYPE = "application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True)
class Form:
    """Fields of a form with their texts."""

    fields: dict[str, list[str]]

    def text(self, name: str, default: str = "") -> str:
        """Return the text of a field without surrounding spaces, or `default` if it is empty or missing."""
        values = self.fields.get(name)
        return values[0].strip() if values and values[0].strip() else default

    def raw(self, name: str) -> str:
        """Return the text of a field as typed, with line breaks as `\\n`."""
        values = self.fields.get(name)
        return values[0].replace("\r\n", "\n") if values else ""

    def texts(self, name: str) -> list[str]:
        """Return all texts of a repeatable field."""
        return self.fields.get(name, [])

    def required(self, name: str, what: str) -> str:
        """Return the text of a mandatory field. Raises `UsageError` if it is empty."""
        if not (text := self.text(name)):
            raise UsageError(f"{what} is missing", hint=f"say {what}")
        return text


async def form_of(request: Request) -> Form:
    """Return the form in the body of a request. Raises `UsageError` for any other body."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != MEDIA_TYPE:
        raise UsageError(f"expected a form, got {kind or 'a body of no kind'}", hint="send the form of the page")
    try:
        text = (await request.body()).decode()
        return Form(parse_qs(text, keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="strict"))
    except ValueError:  # not UTF-8, or too many fields
        raise UsageError("the form is invalid", hint="reload the page and send it again") from None


COOKIE, FIELD = "tasker_form", "form_token"
OWN = ("same-origin", "none")
_TOKEN = re.compile(r"[\w-]{43}")
STALE = "reload the page and send the form again: it was opened by another browser, or too long ago"


def token_of(request: Request) -> str:
    """Return the token of this browser, a new one if it has none."""
    if not hasattr(request.state, "form_token"):
        cookie = request.cookies.get(COOKIE, "")
        request.state.form_token = cookie if _TOKEN.fullmatch(cookie) else token_urlsafe(32)
    token: str = request.state.form_token
    return token


def set_token_cookie(request: Request, answer: Response) -> None:
    """Set the browser's token cookie."""
    if request.cookies.get(COOKIE) != token_of(request):
        set_cookie(request, answer, COOKIE, token_of(request))


def require_same_site(request: Request, form: Form) -> None:
    """Check that the form was opened on this site. Raises `NotPermitted` otherwise."""
    came_from = request.headers.get("sec-fetch-site", "same-origin")
    cookie = request.cookies.get(COOKIE, "")
    fits = (
        _TOKEN.fullmatch(cookie) and compare_digest(cookie, form.text(FIELD)) if form.text(FIELD).isascii() else False
    )
    if came_from not in OWN or not fits:
        raise NotPermitted("this form was not opened on this page", hint=STALE)
