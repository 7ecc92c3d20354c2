"""The rules file of Prometheus."""

from __future__ import annotations

from typing import Any

import yaml

from tools.monitoring.alerts import ALERTS, Alert, Bound

HEAD = "# Made by `python -m tools.monitoring`; change tools/monitoring/alerts.py instead.\n"
PAGE = "docs/reference/metrics.md"


def rules() -> str:
    """All alerts as one group."""
    found = [_rule(alert, bound) for alert in ALERTS for bound in alert.bounds]
    groups = {"groups": [{"name": "tasker_backpressure", "rules": found}]}
    return HEAD + yaml.safe_dump(groups, sort_keys=False, width=1000)


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
