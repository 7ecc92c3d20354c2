"""Values as JSON text."""

from __future__ import annotations

import json


def pretty(value: object) -> str:
    """Return JSON on several lines."""
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)


def compact(value: object) -> str:
    """Return JSON on one line."""
    return json.dumps(value, ensure_ascii=False, default=str)
