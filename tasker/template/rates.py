"""Rates such as `100/s`: how they are written, and as attempts per second."""

from __future__ import annotations

import re
from typing import Final

RATE = re.compile(r"(\d{1,7}(?:\.\d{1,6})?)/([smhd])")
UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
MOST_PER_UNIT = 1_000_000
BURST_SECONDS = 0.25
"""A rate makes up for pauses of the fleet up to this time, unless its template says how many attempts."""
RATE_EXPECTED = "expected a rate such as 100/s, 30/m, 500/h or 1000/d"


def parse_rate(text: str) -> float | None:
    """Parse a rate such as `100/m` into attempts per second; return None for any other text."""
    match = RATE.fullmatch(text)
    if match is None or not 0 < float(match[1]) <= MOST_PER_UNIT:
        return None
    return float(match[1]) / UNITS[match[2]]


def default_burst(rate: float) -> float:
    """Return the burst of a rate for which none is given."""
    return 1 + rate * BURST_SECONDS


def rate_text(rate: float) -> str:
    """Return a rate, in attempts per second, as it is written in a template."""
    rate = float(rate)  # JSON has whole numbers, too
    unit = next(unit for unit, seconds in UNITS.items() if rate * seconds >= 1 or unit == "d")
    for unit, seconds in UNITS.items():
        if (number := round(rate * seconds, 9)) >= 1 and number.is_integer() and int(number) / seconds == rate:
            return f"{int(number)}/{unit}"
    return f"{rate * UNITS[unit]!r}/{unit}"
