"""Sign-in of the web page: sessions and cookies.

A browser's request is handled as if it carried the credential of its session, like a request of any API client.
Permissions are therefore checked in one place, and revoked credentials end their sessions too.
"""

from __future__ import annotations

import re

from fastapi import Request
from starlette.responses import Response

from tasker.errors import UsageError
from tasker.server.application import Options
from tasker.server.auth.caller import AuthenticatedCaller
from tasker.server.auth.gate import open_gate
from tasker.server.auth.tokens import LONGEST_BYTES
from tasker.server.program import program_of


def set_cookie(request: Request, answer: Response, name: str, value: str) -> None:
    """Set a cookie that lasts until the browser is closed.

    It comes with a link that is opened from a mail or a chat, and with no other request of another site: with `strict`,
    each such link would ask to sign in, and replace the token of the forms that are open.
    """
    answer.set_cookie(name, value, path=_path(request), secure=_encrypted(request), httponly=True, samesite="lax")


def drop_cookie(request: Request, answer: Response, name: str) -> None:
    answer.delete_cookie(name, path=_path(request), secure=_encrypted(request), httponly=True, samesite="lax")


def _path(request: Request) -> str:
    return f"{request.scope.get('root_path', '')}/ui"


def _encrypted(request: Request) -> bool:
    """Return whether the browser used TLS, either to this server or to a proxy in front of it."""
    return "https" in (request.url.scheme, request.headers.get("x-forwarded-proto"))


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
    """Return the credentials of a sign-in. Raises `UsageError` for neither a key nor a token."""
    if not text:
        raise UsageError("no credentials entered", hint="enter an API key or a JWT")
    if len(text) > LONGEST_BYTES or not _WRITTEN.fullmatch(text):
        raise UsageError(
            "invalid credentials: expected an API key or a JWT", hint="copy it without spaces or line breaks"
        )
    return text


async def with_session(request: Request) -> Request:
    """Return the request with the credential of its session. One that shows a credential itself stays as it is, and so
    does every request if authentication is disabled."""
    identifier = _identifier(request)
    if identifier is None or request.app.state.gate is open_gate or _own_headers(request) & set(request.headers):
        return request
    credential = await program_of(request).page_sessions.credential(identifier)
    return request if credential is None else with_credential(request, credential)


def with_credential(request: Request, credential: str) -> Request:
    """Return the request as a program would send it, with this credential and no other."""
    options: Options = request.app.state.options
    name, value = _header(credential, options.key_header)
    others = {header_name.encode() for header_name in _own_headers(request)}
    headers = [header for header in request.scope["headers"] if header[0] not in others]
    return Request({**request.scope, "headers": [*headers, (name.lower().encode(), value.encode())]}, request.receive)


def _own_headers(request: Request) -> set[str]:
    options: Options = request.app.state.options
    return {"authorization", options.key_header.lower()}


def _header(credential: str, key_header: str) -> tuple[str, str]:
    return ("Authorization", f"Bearer {credential}") if _TOKEN.fullmatch(credential) else (key_header, credential)


def _identifier(request: Request) -> str | None:
    cookie = request.cookies.get(COOKIE, "")
    return cookie if _IDENTIFIER.fullmatch(cookie) else None
