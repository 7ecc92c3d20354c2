"""Names of queues and URLs of brokers, as settings and messages have them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from tasker.errors import InvalidQueueName

DEFAULT_BACKEND = "pgmq"
"""Default backend: it needs nothing but the engine's database."""
QUEUE_NAME_MAX = 47
"""Maximum length of a queue name: the smallest limit of all backends, so that a setting can change the backend."""
_QUEUE_NAME = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)


def check_queue_name(queue: str) -> str:
    """The name itself, when every backend can carry it: 1 to 47 of `A-Z a-z 0-9 _ -`, without `--`.

    Raises `InvalidQueueName` with the rule that is violated.
    """
    problem = _queue_name_problem(queue)
    if problem:
        hint = f"use 1 to {QUEUE_NAME_MAX} letters, digits, '_' or single '-'"
        raise InvalidQueueName(f"queue name {queue!r} {problem}", hint=hint)
    return queue


def _queue_name_problem(queue: str) -> str | None:
    if not queue:
        return "is empty"
    if len(queue) > QUEUE_NAME_MAX:
        return f"has {len(queue)} characters, {QUEUE_NAME_MAX} are possible"
    if not _QUEUE_NAME.fullmatch(queue):
        return "contains a character other than letters, digits, '_' and '-'"
    return "holds '--'" if "--" in queue else None


BackendSettings = Mapping[str, Any]
ENCODE_URL = "percent-encode special characters of user and password: % as %25, @ as %40, / as %2F, ? as %3F, # as %23"
"""Hint for a broker's URL that cannot be parsed unambiguously."""


def is_clear_url(url: str) -> bool:
    """Return whether no part of a password can be read as host, port or path of a broker's URL.

    A raw `/`, `?` or `#` in a password ends the authority too early: then the port is not a number, or `@` comes later.
    """
    try:
        parts = urlsplit(url if "://" in url else f"//{url}")
        _ = parts.port
    except ValueError:
        return False
    return parts.scheme == "unix" or "@" not in f"{parts.path}{parts.query}{parts.fragment}"
