"""JSON that is encoded already, and goes as it is into whatever is built around it."""

from __future__ import annotations

from tasker.contracts.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class JsonText:
    """The text of one JSON value: results, inputs, failures and contexts are encoded once, and never decoded again."""

    text: str

    @property
    def size(self) -> int:
        """Its length in bytes of UTF-8. Raises `UnicodeEncodeError` for halves of surrogate pairs."""
        return len(self.text) if self.text.isascii() else len(self.text.encode())
