"""Fingerprints of failures: equal for the same error at the same location, whatever data it concerned."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

MESSAGE_LIMIT = 1000
"""Number of characters of a message that are compared."""
LENGTH = 16
"""Number of hexadecimal digits of a fingerprint."""

_VARYING = re.compile(
    r"(?P<uuid>\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b)"
    r"|(?P<time>\b\d{4}-\d\d-\d\d(?:[t ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:z|[+-]\d\d:?\d\d)?)?)"
    r"|(?P<text>'[^'\n]*'|\"[^\"\n]*\")"
    r"|(?P<hex>\b0x[0-9a-f]+\b|\b(?=[0-9a-f]*\d)[0-9a-f]{8,}\b)"
    r"|(?P<n>[+-]?\d+(?:[.,]\d+)*)"
)


def fingerprint(error: Mapping[str, Any], place: str | None = None) -> str:
    """Return the fingerprint of a stored failure, sixteen hexadecimal digits.

    It covers the type of the exception, the `place` where it was raised (file and function, without the line, which
    changes with every edit), and the message without variable parts. A failure without an exception uses its error type
    and its handler instead.
    """
    metadata = error.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    kind = metadata.get("exception_type") or error.get("error_type")
    place = place or error.get("handler")
    said = "\n".join(
        str(part or "") for part in (kind, place, error.get("error_code"), normalized(error.get("message")))
    )
    return hashlib.sha256(said.encode("utf-8", "backslashreplace")).hexdigest()[:LENGTH]


def normalized(message: Any) -> str:
    """Return the message with placeholders in place of identifiers, times, quoted texts and numbers."""
    text = " ".join(str(message or "")[:MESSAGE_LIMIT].lower().split())
    return _VARYING.sub(lambda found: f"<{found.lastgroup}>", text)
