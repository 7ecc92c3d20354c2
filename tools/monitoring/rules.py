"""The rules file of Prometheus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import yaml

from tools.monitoring.alert import Alert, Bound
from tools.monitoring.alerts import GROUPS

HEAD = "# Made by `python -m tools.monitoring`; change tools/monitoring/alerts.py instead.\n"
PAGE = "docs/reference/metrics.md"


def rules() -> str:
    """All alerts, by their groups."""
    groups = [{"name": name, "rules": list(_rules(alerts))} for name, alerts in GROUPS.items()]
    return HEAD + yaml.safe_dump({"groups": groups}, sort_keys=False, width=1000)


def _rules(alerts: Iterable[Alert]) -> Iterator[dict[str, Any]]:
    return (_rule(alert, bound) for alert in alerts for bound in alert.bounds)


def _rule(alert: Alert, bound: Bound) -> dict[str, Any]:
    return {
        "alert": alert.name,
        "expr": alert.expression(bound),
        "for": bound.lasts,
        "labels": {"severity": bound.severity},
        "annotations": {
            "summary": alert.summary,
            "description": f"{_value(alert)}{alert.to_do}",
            "runbook": f"{PAGE}#{alert.name.lower()}",
        },
    }


def _value(alert: Alert) -> str:
    return f'Now {{{{ $value | printf "%.1f" }}}}{alert.unit}. ' if alert.unit else ""
