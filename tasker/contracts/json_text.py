"""JSON that is encoded already, and goes as it is into whatever is built around it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class JsonText:
    """The text of one JSON value: results, inputs, failures and contexts are encoded once, and never decoded again."""

    text: str
