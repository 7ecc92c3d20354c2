"""Messages that point to stored results, several with one: identifiers only, because the rows are the truth."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

POINTED_AT = 32
"""Results that one message points to at most: its text then stays below the size that PostgreSQL keeps apart."""


def pointers_to(results: Sequence[Mapping[str, Any]], together: int = POINTED_AT) -> Iterator[bytes]:
    """The payloads that point to these results in their order, up to `together` with each.

    One alone is told as it is (step, task, token); of several only the steps, `{"steps": [...]}`.
    """
    for start in range(0, len(results), together):
        part = results[start : start + together]
        message = part[0] if len(part) == 1 else {"steps": [result["step"] for result in part]}
        yield json.dumps(message, allow_nan=False).encode()


def pointed_at(payload: bytes) -> list[str]:
    """The steps to whose results a payload points. Raises `ValueError`, saying why, when it does not."""
    try:
        message = json.loads(payload)
        steps = message["steps"] if "steps" in message else [message["step"]]
        found = [str(UUID(step)) for step in steps]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"the message points to no parked step: {error!r:.200}") from error
    if not found:
        raise ValueError("the message points to no parked step: its list is empty")
    return found
