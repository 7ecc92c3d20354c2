"""Field types for texts that PostgreSQL can store, and for times."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, Field

from tasker.contracts.durations import parse_duration


def storable_text(value: str) -> str:
    """Return the text. Raises `ValueError` if it contains a NUL character or half a character (a lone surrogate)."""
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


def _no_number(value: Any) -> Any:
    """Reject numbers, which pydantic would read as seconds since 1970: the description does not offer that."""
    try:
        float(value)
    except (TypeError, ValueError):
        return value
    raise ValueError("expected a date and time such as 2026-01-31T12:00:00Z, got a number")


Moment = Annotated[datetime, BeforeValidator(_no_number)]


def _duration(value: str) -> str:
    parse_duration(value)
    return value


Duration = Annotated[str, AfterValidator(_duration), Field(examples=["5m"], max_length=40)]
AwareMoment = Annotated[AwareDatetime, BeforeValidator(_no_number)]
