"""What templates, steps and events may be called."""

from __future__ import annotations

NAME = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"
NAME_RULE = "use letters, digits, `_`, `-` and `.`, without spaces"
MAX_NAME = 128
"""Characters."""
