"""Parsing of submitted forms."""

from __future__ import annotations

from urllib.parse import parse_qs

from fastapi import Request

from tasker.contracts.dataclasses import dataclass
from tasker.errors import UsageError

MOST_FIELDS = 2000
MEDIA_TYPE = "application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True)
class Form:
    """Fields of a form with their texts."""

    fields: dict[str, list[str]]

    def text(self, name: str, default: str = "") -> str:
        """Return the text of a field without surrounding spaces, or `default` if it is empty or missing."""
        found = self.fields.get(name)
        return found[0].strip() if found and found[0].strip() else default

    def raw(self, name: str) -> str:
        """Return the text of a field as typed, with line breaks as `\\n`."""
        found = self.fields.get(name)
        return found[0].replace("\r\n", "\n") if found else ""

    def texts(self, name: str) -> list[str]:
        """Return all texts of a repeatable field."""
        return self.fields.get(name, [])

    def required(self, name: str, what: str) -> str:
        """Return the text of a mandatory field. Raises `UsageError` if it is empty."""
        if not (found := self.text(name)):
            raise UsageError(f"{what} is missing", hint=f"say {what}")
        return found


async def form_of(request: Request) -> Form:
    """Return the form in the body of a request. Raises `UsageError` for any other body."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != MEDIA_TYPE:
        raise UsageError(f"expected a form, got {kind or 'a body of no kind'}", hint="send the form of the page")
    try:
        text = (await request.body()).decode()
        return Form(parse_qs(text, keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="strict"))
    except ValueError:  # not UTF-8, or too many fields
        raise UsageError("the form is invalid", hint="reload the page and send it again") from None
