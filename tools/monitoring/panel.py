"""A panel of the dashboard, and the questions that many of them ask."""

from __future__ import annotations

from dataclasses import dataclass

from tools.monitoring.alerts import ALERTS

BY_NAME = {alert.name: alert for alert in ALERTS}


@dataclass(frozen=True, slots=True)
class Panel:
    """(legend, expression) of each line; `alert` names the one whose bounds are drawn."""

    title: str
    lines: tuple[tuple[str, str], ...]
    unit: str = "short"
    kind: str = "timeseries"
    alert: str = ""


def quantiles(histogram: str, by: str = "") -> tuple[tuple[str, str], ...]:
    """A line for each of three quantiles, of all together or by a label."""
    asked = f"sum by (le{f', {by}' if by else ''}) (rate({histogram}_bucket[$__rate_interval]))"
    legend = f" {{{{{by}}}}}" if by else ""
    return tuple((f"p{q}{legend}", f"histogram_quantile(0.{q}, {asked})") for q in (50, 95, 99))


def rate(metric: str, by: str = "") -> str:
    """How much a counter grows in a second."""
    return f"sum{f' by ({by})' if by else ''} (rate({metric}[$__rate_interval]))"
