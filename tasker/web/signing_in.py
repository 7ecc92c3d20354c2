"""Who looks at the pages: the key or token that they have signed in with, kept by their browser.

The pages hold no sessions: a request shows the same credential that a program would, so every process of a server
knows it, and what is revoked is revoked here as well.
"""

from __future__ import annotations

import base64
import binascii
import re

from fastapi import Request
from starlette.responses import Response

from tasker.api.application import Options
from tasker.errors import UsageError
from tasker.web.cookies import drop_cookie, set_cookie

COOKIE = "tasker_session"
LONGEST = 3000
"""What is longer a browser would not keep."""
_WRITTEN = re.compile(r"[\x21-\x7e]+")
_TOKEN = re.compile(r"[\w-]+\.[\w-]+\.[\w-]+")


def sign_in(request: Request, answer: Response, credential: str) -> None:
    """Let the browser keep the key or token."""
    set_cookie(request, answer, COOKIE, base64.urlsafe_b64encode(credential.encode()).decode())


def sign_out(request: Request, answer: Response) -> None:
    """Let the browser forget it."""
    drop_cookie(request, answer, COOKIE)


def checked_credential(text: str) -> str:
    """What somebody signs in with. Raises `UsageError` for what is neither a key nor a token."""
    if not text:
        raise UsageError("nothing was given to sign in with", hint="give an API key, or a token")
    if len(text) > LONGEST or not _WRITTEN.fullmatch(text):
        raise UsageError("that is neither an API key nor a token", hint="copy it without spaces or line breaks")
    return text


def with_credential(request: Request, credential: str | None = None) -> Request:
    """The request as a program would send it; without one: with that of the cookie. Its own stays."""
    options: Options = request.app.state.options
    own = {"authorization", options.key_header.lower()}
    credential = credential or _kept(request)
    if credential is None or own & set(request.headers.keys()):
        return request
    name, value = _header(credential, options.key_header)
    headers = [*request.scope["headers"], (name.lower().encode(), value.encode())]
    return Request({**request.scope, "headers": headers}, request.receive)


def _header(credential: str, key_header: str) -> tuple[str, str]:
    return ("Authorization", f"Bearer {credential}") if _TOKEN.fullmatch(credential) else (key_header, credential)


def _kept(request: Request) -> str | None:
    try:
        return checked_credential(base64.urlsafe_b64decode(request.cookies.get(COOKIE, "")).decode())
    except (UsageError, UnicodeDecodeError, binascii.Error, ValueError):
        return None
