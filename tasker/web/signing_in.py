"""Sessions of the web UI: the browser has the session identifier, the database the credential.

A browser's request is handled as if it carried the credential of its session, like a request of any API client.
Permissions are therefore checked in one place, and revoked credentials end their sessions too.
"""

from __future__ import annotations

import re

from fastapi import Request
from starlette.responses import Response

from tasker.api.application import Options
from tasker.api.permissions import open_gate
from tasker.api.program import program_of
from tasker.errors import UsageError
from tasker.services.authentication.caller import AuthenticatedCaller
from tasker.services.authentication.tokens import LONGEST_BYTES
from tasker.web.cookies import drop_cookie, set_cookie

COOKIE = "tasker_session"
_IDENTIFIER = re.compile(r"[\w-]{43}", re.ASCII)
_WRITTEN = re.compile(r"[\x21-\x7e]+")
_TOKEN = re.compile(r"[\w-]+\.[\w-]+\.[\w-]+")


async def sign_in(request: Request, answer: Response, credential: str, caller: AuthenticatedCaller) -> None:
    """Begin a session in place of the one that the browser has."""
    sessions, former = program_of(request).page_sessions, _identifier(request)
    identifier = await sessions.begin(credential, until=caller.known_until)
    if former is not None:
        await sessions.end(former)
    set_cookie(request, answer, COOKIE, identifier)


async def sign_out(request: Request, answer: Response) -> None:
    """End the session, wherever its cookie has been copied to."""
    if (identifier := _identifier(request)) is not None:
        await program_of(request).page_sessions.end(identifier)
    drop_cookie(request, answer, COOKIE)


def checked_credential(text: str) -> str:
    """Return what somebody signs in with. Raises `UsageError` for what is neither a key nor a token."""
    if not text:
        raise UsageError("no credentials entered", hint="enter an API key or a JWT")
    if len(text) > LONGEST_BYTES or not _WRITTEN.fullmatch(text):
        raise UsageError(
            "invalid credentials: expected an API key or a JWT", hint="copy it without spaces or line breaks"
        )
    return text


async def with_session(request: Request) -> Request:
    """Return the request with the credential of its session. One that shows a credential itself stays as it is, and so
    does every request where nobody is asked who they are."""
    identifier = _identifier(request)
    if identifier is None or request.app.state.gate is open_gate or _own_headers(request) & set(request.headers):
        return request
    credential = await program_of(request).page_sessions.credential(identifier)
    return request if credential is None else with_credential(request, credential)


def with_credential(request: Request, credential: str) -> Request:
    """Return the request as a program would send it, with this credential and no other."""
    options: Options = request.app.state.options
    name, value = _header(credential, options.key_header)
    others = {own.encode() for own in _own_headers(request)}
    headers = [header for header in request.scope["headers"] if header[0] not in others]
    return Request({**request.scope, "headers": [*headers, (name.lower().encode(), value.encode())]}, request.receive)


def _own_headers(request: Request) -> set[str]:
    options: Options = request.app.state.options
    return {"authorization", options.key_header.lower()}


def _header(credential: str, key_header: str) -> tuple[str, str]:
    return ("Authorization", f"Bearer {credential}") if _TOKEN.fullmatch(credential) else (key_header, credential)


def _identifier(request: Request) -> str | None:
    given = request.cookies.get(COOKIE, "")
    return given if _IDENTIFIER.fullmatch(given) else None
