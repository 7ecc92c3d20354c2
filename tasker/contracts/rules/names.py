"""Rules for the names of templates, steps and events."""

from __future__ import annotations

NAME = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"
NAME_RULE = "use letters, digits, `_`, `-` and `.`, without spaces"
VERSION = rf"{NAME}(?:\+[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*)?"
VERSION_RULE = f"{NAME_RULE}; build metadata of SemVer may follow behind a `+`: 1.0.0+build.5"
MAX_NAME = 128
"""Maximum number of characters."""
