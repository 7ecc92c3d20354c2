"""Metrics and alerts as tables, and what is made from them."""

from collections.abc import Callable, Mapping
from pathlib import Path

from tools.monitoring.dashboard import dashboard
from tools.monitoring.reference import reference
from tools.monitoring.rules import rules

ROOT = Path(__file__).parents[2]
FILES: Mapping[str, Callable[[], str]] = {
    "docs/reference/metrics.md": reference,
    "deploy/prometheus/tasker.rules.yaml": rules,
    "deploy/grafana/tasker.json": dashboard,
}
