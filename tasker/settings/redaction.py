"""Redaction of secrets in displayed settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from tasker.contracts.defaults import REDACTED as REDACTED

PATTERNS = (
    "password", "secret", "token", "key", "api_key", "private_key", "jwt_private_key", "jwt_public_key", "auth_token",
    "credentials", "database_url", "dsn", "url", "headers",
)  # fmt: skip
"""Fragments that mark a key as secret, regardless of case: hiding harmless values is better than showing a secret."""


def is_secret(key: str, value: Any) -> bool:
    """Return whether a value under this key must be hidden. Empty text and booleans reveal nothing."""
    if value is None or value == "" or isinstance(value, bool):
        return False
    lowered = key.lower()
    return any(pattern in lowered for pattern in PATTERNS)


def redacted(tables: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return a copy with the secrets replaced, and their sorted dotted paths."""
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


_HOST = r"(?:\[[^\[\]@?/]*\]|[^\[\]:,@?/]*)(?::\d*)?"
_DATABASE_URL = re.compile(
    rf"(?P<scheme>\w[\w+.-]*://)(?:(?P<user>[^:@/]*)(?P<password>:[^@/]*)?@)?"
    rf"(?P<where>{_HOST}(?:,{_HOST})*(?:/[^@?]*)?)(?:\?(?P<query>.*))?",
    re.DOTALL,
)
"""Database URL as libpq parses it. A URL that libpq would parse differently than meant (a raw `@` or `/` in a password)
does not match, because a part of the password would be read as host, port or database.
"""


ENCODE = "percent-encode special characters of user and password: % as %25, @ as %40, / as %2F, : as %3A"
"""Hint for a URL that cannot be parsed unambiguously."""


def is_clear(url: str) -> bool:
    """Return whether a database URL is unambiguous, so that no part of a password is read as another part."""
    return _DATABASE_URL.fullmatch(url) is not None and not re.search(r"%(?![0-9A-Fa-f]{2})", url)


def without_password(url: str) -> str:
    """Return a database URL with `***` for its secrets, for messages that must name the server.

    Only the scheme remains of an ambiguous URL. Never raises.
    """
    match = _DATABASE_URL.fullmatch(url)
    if match is None:
        scheme = re.match(r"\w[\w+.-]*://", url)
        return f"{scheme[0] if scheme else ''}***" if url else ""
    user = "" if match["user"] is None else f"{match['user']}{':***' if match['password'] else ''}@"
    query = "" if match["query"] is None else "?" + "&".join(map(_shown_option, match["query"].split("&")))
    return f"{match['scheme']}{user}{match['where']}{query}"


def _shown_option(option: str) -> str:
    name, separator, value = option.partition("=")
    if not separator:
        return "***" if option else ""  # the rest of a value that contains a raw `&`
    return f"{name}=***" if is_secret(unquote(name), value) else option
