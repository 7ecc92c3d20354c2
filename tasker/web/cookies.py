"""Cookies of the pages: of no other site's requests, out of reach of scripts, and sent to the pages alone."""

from __future__ import annotations

from fastapi import Request
from starlette.responses import Response


def set_cookie(request: Request, answer: Response, name: str, value: str) -> None:
    """Keep it until the browser is closed."""
    answer.set_cookie(name, value, path=_path(request), secure=_encrypted(request), httponly=True, samesite="strict")


def drop_cookie(request: Request, answer: Response, name: str) -> None:
    """Forget it."""
    answer.delete_cookie(name, path=_path(request), secure=_encrypted(request), httponly=True, samesite="strict")


def _path(request: Request) -> str:
    return f"{request.scope.get('root_path', '')}/ui"


def _encrypted(request: Request) -> bool:
    """Whether the browser came by TLS, to us or to a proxy before us."""
    return "https" in (request.url.scheme, request.headers.get("x-forwarded-proto"))
