"""Values as text."""

from __future__ import annotations

import json


def pretty(value: object) -> str:
    """JSON on several lines, for people."""
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)


def compact(value: object) -> str:
    """JSON on one line."""
    return json.dumps(value, ensure_ascii=False, default=str)
