"""Messages that point to stored results, one or several: they have only identifiers, because the rows decide."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

POINTED_AT = 32
"""Maximum number of results per message, so that PostgreSQL does not store its text out of line."""


def pointers_to(results: Sequence[Mapping[str, Any]], together: int = POINTED_AT) -> Iterator[bytes]:
    """Yield payloads that point to these results in order, each to up to `together` of them.

    A payload for a single result has its step, task and token; one for several has only the steps, `{"steps": [...]}`.
    """
    for start in range(0, len(results), together):
        part = results[start : start + together]
        message = part[0] if len(part) == 1 else {"steps": [result["step"] for result in part]}
        yield json.dumps(message, allow_nan=False).encode()


def pointed_at(payload: bytes) -> list[str]:
    """Return the steps to whose results a payload points. Raises `ValueError` with the reason if it is invalid."""
    try:
        message = json.loads(payload)
        steps = message["steps"] if "steps" in message else [message["step"]]
        found = [str(UUID(step)) for step in steps]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"the message points to no parked step: {error!r:.200}") from error
    if not found:
        raise ValueError("the message points to no parked step: its list is empty")
    return found
