"""Values of the secrets that this process has read: replaced in texts, refused in values that are to be stored. Pure.

Before a secret is read, every check costs one test for emptiness.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any
from urllib.parse import quote, quote_plus

REDACTED = "***REDACTED***"
"""Replacement of redacted values."""
SHORTEST = 6
"""Minimum length of a secret that is searched for: shorter ones would match everywhere."""


class KnownSecrets:
    """Set of secrets, searched for as they are and as JSON, base64, hexadecimal or percent-encoded text."""

    __slots__ = ("_escaped", "_forms", "_pattern", "_values")

    def __init__(self) -> None:
        self._values: frozenset[str] = frozenset()
        self._forms: tuple[str, ...] = ()
        self._pattern = re.compile("(?!)")
        self._escaped = False

    def __bool__(self) -> bool:
        return bool(self._forms)

    def add(self, value: str) -> None:
        """Add a secret. Those of less than `SHORTEST` characters are ignored."""
        if len(value) < SHORTEST or value in self._values:
            return
        self._values |= {value}
        forms = sorted({form for known in self._values for form in _forms_of(known)}, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, forms)))
        self._escaped = self._escaped or json.dumps(value)[1:-1] != value
        self._forms = tuple(forms)

    def is_in(self, text: str) -> bool:
        """Return True if the text contains a secret."""
        return any(form in text for form in self._forms)

    def redact(self, value: Any) -> Any:
        """Return the text or data with every secret replaced. Dataclasses keep their type."""
        if not self._forms:
            return value
        if isinstance(value, str):
            return self._pattern.sub(REDACTED, value) if self.is_in(value) else value
        if isinstance(value, Mapping):
            return {self.redact(key): self.redact(item) for key, item in value.items()}
        if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
            return type(value)(self.redact(item) for item in value)
        if is_dataclass(value) and not isinstance(value, type):
            return replace(value, **{field.name: self.redact(getattr(value, field.name)) for field in fields(value)})
        return value

    def path_in(self, value: Any, text: str) -> str | None:
        """Return the path of the first secret in a value (`$.rows[3].key`), or None. `text` is the value as JSON.

        JSON inside a text of the value is escaped twice: secrets that JSON escapes are searched for in the value.
        """
        if not self._escaped and not self.is_in(text):
            return None
        return next(self._paths(value, "$"), "$" if self.is_in(text) else None)

    def _paths(self, value: Any, path: str) -> Iterator[str]:
        if isinstance(value, str):
            if self.is_in(value):
                yield path
        elif isinstance(value, Mapping):
            for key, item in value.items():
                name = self.redact(str(key))
                if name != str(key):
                    yield f"{path}.{name}"
                yield from self._paths(item, f"{path}.{name}")
        elif isinstance(value, list | tuple):
            for number, item in enumerate(value):
                yield from self._paths(item, f"{path}[{number}]")


def _forms_of(value: str) -> Iterator[str]:
    raw = value.encode(errors="surrogatepass")
    yield from (value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1])
    yield from (quote(raw, safe=""), quote(raw), quote_plus(raw), raw.hex(), raw.hex().upper())
    for shift in range(3):  # base64 of a longer text that contains it, at any of three positions
        encoded = base64.b64encode(bytes(shift) + raw).decode()
        inside = encoded[-(-shift * 8 // 6) : (shift + len(raw)) * 8 // 6]
        yield from (inside, inside.replace("+", "-").replace("/", "_"))


KNOWN = KnownSecrets()
"""Secrets of this process."""
