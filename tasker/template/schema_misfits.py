"""Reasons for which a value of one JSON Schema may not fit another one, and those found in limits of scalars."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from fractions import Fraction
from typing import Any

from tasker.dataclasses import dataclass


class Misfit(StrEnum):
    """Reason for which a value of the producer may not fit the consumer."""

    TYPE = "type"
    """Another type."""
    VALUES = "values"
    """A value that the consumer does not list."""
    MISSING = "missing"
    """A required field that the producer does not have."""
    OPTIONAL = "optional"
    """A required field that the producer may leave out."""
    REFUSED = "refused"
    """A field that the consumer refuses."""
    BOUNDS = "bounds"
    """A narrower limit: a length, a number, a pattern, a format."""
    CLOSED = "closed"
    """Only listed fields are allowed, and the producer may have others."""
    UNLISTED = "unlisted"
    """A field that the producer does not list but may have, of any type."""
    UNDESCRIBED = "undescribed"
    """A value of which the producer's schema says nothing."""
    UNDECIDED = "undecided"
    """Keywords that this relation does not compare."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Place (`$.items[*].sku`) at which a value of the producer may not fit the consumer, and the reason."""

    misfit: Misfit
    path: str
    message: str


def undecided(path: str, reason: str) -> Difference:
    return Difference(Misfit.UNDECIDED, path, f"cannot be decided: {reason}")


def range_differences(path: str, what: str, given: tuple[Any, Any], wanted: tuple[Any, Any]) -> Iterator[Difference]:
    (least, most), (low, high) = given, wanted
    if low is not None and (least is None or least < low):
        yield Difference(Misfit.BOUNDS, path, f"may have {least or 0} {what}, expected at least {low}")
    if high is not None and (most is None or most > high):
        may = f"{most}" if most is not None else "any number of"
        yield Difference(Misfit.BOUNDS, path, f"may have {may} {what}, expected at most {high}")


def string_differences(given: Any, wanted: Any, path: str, depth: int) -> Iterator[Difference]:
    limits = (wanted.get("minLength"), wanted.get("maxLength"))
    yield from range_differences(path, "characters", (given.get("minLength", 0), given.get("maxLength")), limits)
    for key in ("pattern", "format"):
        if key in wanted and given.get(key) != wanted[key]:
            if key in given:
                yield undecided(path, f"the {key}s `{given[key]}` and `{wanted[key]}` are not compared")
            else:
                yield Difference(Misfit.BOUNDS, path, f"may be any text, expected the {key} `{wanted[key]}`")


def number_differences(given: Any, wanted: Any, path: str, depth: int) -> Iterator[Difference]:
    limits = ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum")
    if any(isinstance(schema.get(key), bool) for schema in (given, wanted) for key in limits):
        yield undecided(path, "limits of an older dialect are not compared")
        return
    for below, sign in (("minimum", 1), ("maximum", -1)):
        strict = f"exclusive{below.capitalize()}"
        for key in (below, strict):
            if key not in wanted:
                continue
            limit = Fraction(wanted[key]) * sign
            own = Fraction(given[below]) * sign if below in given else None
            beyond = strict in given and Fraction(given[strict]) * sign >= limit
            if not beyond and (own is None or own < limit or (own == limit and key == strict)):
                yield Difference(Misfit.BOUNDS, path, f"may be beyond the {key} {wanted[key]}")
    if "multipleOf" in wanted and not _is_multiple(given, wanted["multipleOf"]):
        yield Difference(Misfit.BOUNDS, path, f"may be no multiple of {wanted['multipleOf']}")


def _is_multiple(given: Any, step: Any) -> bool:
    """Return whether all values are multiples. Validators divide floats inexactly, so only integers are computed."""
    own = given.get("multipleOf")
    if own == step:
        return True
    if not isinstance(step, int):
        return False
    return (isinstance(own, int) and own % step == 0) or (given.get("type") == "integer" and step == 1)
