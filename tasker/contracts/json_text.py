"""JSON text that is already encoded and is embedded unchanged."""

from __future__ import annotations

from tasker.contracts.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class JsonText:
    """Text of one JSON value: results, inputs, failures and contexts are encoded once and never decoded again."""

    text: str

    @property
    def size(self) -> int:
        """Return the length in bytes of UTF-8. Raises `UnicodeEncodeError` for lone surrogates."""
        return len(self.text) if self.text.isascii() else len(self.text.encode())
