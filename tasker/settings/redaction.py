"""Hiding secrets in what is shown (C-152)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

REDACTED = "***REDACTED***"
PATTERNS = (
    "password", "secret", "token", "key", "api_key", "private_key", "jwt_private_key", "jwt_public_key", "auth_token",
    "credentials", "database_url", "url",
)  # fmt: skip
"""A key that holds one of these, in any case, holds a secret: some harmless values are hidden rather than one shown."""


def is_secret(key: str, value: Any) -> bool:
    """True when a value under that key must not be shown. Empty text and switches tell nothing."""
    if value is None or value == "" or isinstance(value, bool):
        return False
    lowered = key.lower()
    return any(pattern in lowered for pattern in PATTERNS)


def redacted(tables: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """A copy of the same structure with the secrets replaced, and their dotted paths, sorted."""
    paths: list[str] = []
    copy = _table(tables, "", paths)
    return copy, sorted(paths)


def _table(table: Mapping[str, Any], prefix: str, paths: list[str]) -> dict[str, Any]:
    return {key: _value(key, value, f"{prefix}{key}", paths) for key, value in table.items()}


def _value(key: str, value: Any, path: str, paths: list[str]) -> Any:
    if isinstance(value, Mapping):
        return _table(value, f"{path}.", paths)
    if isinstance(value, (list, tuple)):
        return [_value(key, item, f"{path}[{index}]", paths) for index, item in enumerate(value)]
    if not is_secret(key, value):
        return value
    paths.append(path)
    return REDACTED


def without_password(url: str) -> str:
    """The URL with `***` for its password, for summaries that must name the server (C-155)."""
    parts = urlsplit(url)
    if parts.password is None:
        return url
    return parts._replace(netloc=parts.netloc.replace(f":{parts.password}@", ":***@")).geturl()
