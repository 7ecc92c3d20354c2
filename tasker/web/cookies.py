"""Cookies of the web UI: not sent with requests of other sites, hidden from scripts, and limited to the UI's path."""

from __future__ import annotations

from fastapi import Request
from starlette.responses import Response


def set_cookie(request: Request, answer: Response, name: str, value: str) -> None:
    """Set a cookie that lasts until the browser is closed."""
    answer.set_cookie(name, value, path=_path(request), secure=_encrypted(request), httponly=True, samesite="strict")


def drop_cookie(request: Request, answer: Response, name: str) -> None:
    answer.delete_cookie(name, path=_path(request), secure=_encrypted(request), httponly=True, samesite="strict")


def _path(request: Request) -> str:
    return f"{request.scope.get('root_path', '')}/ui"


def _encrypted(request: Request) -> bool:
    """Return whether the browser used TLS, either to this server or to a proxy in front of it."""
    return "https" in (request.url.scheme, request.headers.get("x-forwarded-proto"))
