"""`--since`: a duration or a date."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import click

SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])")
NEARLY = re.compile(r"-?(\d+(?:\.\d+)?)\s*([smhdw]?)", re.IGNORECASE)
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
EXPECTED = "expected 90s, 15m, 2h, 7d or 2w, or a date such as 2026-01-31 or '2026-01-31 18:00'"


def since(text: str) -> datetime:
    """Convert the option's text to a time, relative to now."""
    return moment(text, datetime.now(UTC))


def moment(text: str, now: datetime) -> datetime:
    """Convert the text to a time. Raises `click.BadParameter` if it is invalid or in the future."""
    span = SPAN.fullmatch(text.strip())
    try:
        if span:
            found = now - timedelta(seconds=float(span[1]) * SECONDS[span[2]])
        else:
            found = datetime.fromisoformat(text.strip())
            found = found if found.tzinfo else found.astimezone()
    except OverflowError:
        raise click.BadParameter(f"{text} is too far in the past; {EXPECTED}") from None
    except ValueError:
        near = NEARLY.match(text.strip())
        meant = f"; did you mean {near[1]}{(near[2] or 'h').lower()}?" if near and "-" not in text[1:] else ""
        raise click.BadParameter(f"{text!r} is not a duration or a date{meant}\n{EXPECTED}") from None
    if found >= now:
        raise click.BadParameter(f"{text} is in the future or now; {EXPECTED}")
    return found
