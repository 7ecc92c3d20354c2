"""Progress reports of handlers."""

from __future__ import annotations

import math

from tasker.contracts.reporting import ProgressReport
from tasker.types.printable import shown

HINT = "report_progress(percent=40), report_progress(done=4, total=10) or report_progress(done=4)"
LONGEST = 500


def progress_report(
    percent: float | None, done: float | None, total: float | None, message: str | None
) -> ProgressReport:
    """Return the report of these numbers. Raises `ValueError` if they are missing, invalid or contradict each other."""
    for name, value in (("percent", percent), ("done", done), ("total", total)):
        if value is not None and not (_is_number(value) and value >= 0):
            raise ValueError(f"{name} is {shown(value)}; a number from 0 on is expected: {HINT}")
    if percent is None and done is None and total is None and not message:
        raise ValueError(f"nothing is reported: {HINT}, each with a message or without")
    if percent is not None and (done is not None or total is not None):
        raise ValueError(f"percent is given beside done or total; they say the same: {HINT}")
    if total is not None and (done is None or done > total):
        raise ValueError(f"done is {done!r} of {total!r}; it cannot be more, or missing: {HINT}")
    if percent is not None and percent > 100:
        raise ValueError(f"percent is {percent!r}, more than 100: {HINT}")
    return ProgressReport(_fraction(percent, done, total), done, total, _shortened(message))


def _is_number(value: object) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer too large for a float
        return False


def _fraction(percent: float | None, done: float | None, total: float | None) -> float | None:
    if percent is not None:
        return percent / 100
    if done is None or not total:
        return None if total is None else 1.0
    return done / total


def _shortened(message: str | None) -> str | None:
    if message is None:
        return None
    clean = str(message).replace("\0", " ").encode(errors="replace").decode()
    return clean if len(clean) <= LONGEST else f"{clean[: LONGEST - 3]}..."
