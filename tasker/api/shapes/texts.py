"""Texts that a database can keep."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field


def storable_text(value: str) -> str:
    """The text. Raises `ValueError` for one that holds a NUL character or half of a character (a lone surrogate)."""
    if "\0" in value:
        raise ValueError("holds a NUL character")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError("holds half of a character (a lone surrogate)") from None
    return value


Name = Annotated[str, Field(min_length=1, max_length=255), AfterValidator(storable_text)]
Text = Annotated[str, Field(max_length=1024), AfterValidator(storable_text)]
