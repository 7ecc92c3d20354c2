"""An alert: a signal, and from which value on it is one. A threshold stands once, in the alert."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bound:
    """From `value` on, for `lasts`, it is an alert of this severity."""

    severity: str
    value: float
    lasts: str


@dataclass(frozen=True, slots=True)
class Alert:
    """A signal that is compared (`compare`) with its bounds; `unit` stands behind its value in texts."""

    name: str
    signal: str
    compare: str
    bounds: tuple[Bound, ...]
    summary: str
    to_do: str
    unit: str = ""

    def expression(self, bound: Bound) -> str:
        """What Prometheus evaluates."""
        return f"{self.signal} {self.compare} {bound.value:g}" if self.compare else self.signal


def one(severity: str, value: float, lasts: str) -> tuple[Bound, ...]:
    """A single bound."""
    return (Bound(severity, value, lasts),)


def two(warning: float, critical: float, lasts: str, sooner: str | None = None) -> tuple[Bound, ...]:
    """A warning and what is worse, which may last for less."""
    return (Bound("warning", warning, lasts), Bound("critical", critical, sooner or lasts))
