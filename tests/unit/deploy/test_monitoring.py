"""Reference, rules and dashboard are made from the tables, and ask only for what some process tells."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator

import pytest
import yaml

from tools.monitoring import FILES, ROOT
from tools.monitoring.alerts import ALERTS
from tools.monitoring.catalogue import METRICS, SERIES, Told
from tools.monitoring.dashboard import dashboard
from tools.monitoring.published import ELSEWHERE
from tools.monitoring.rules import rules

WORDS = {"sum", "max", "rate", "increase", "absent", "by", "unless", "histogram_quantile", "le", "or"}
UNITS = ("_milliseconds", "_ms", "_seconds", "_hours")
SELECTOR = re.compile(r"([a-z][a-z0-9_]*)(?:\{([^}]*)\})?(\[[^]]+\])?")


OF_PROMETHEUS = {"up": Told("up", "gauge", "Whether it was scraped.", (("job", ""), ("instance", "")), ())}
KNOWN = {**SERIES, **OF_PROMETHEUS}


def expressions() -> Iterator[str]:
    yield from (alert.expression(bound) for alert in ALERTS for bound in alert.bounds)
    panels = json.loads(dashboard())["panels"]
    yield from (target["expr"] for panel in panels for target in panel.get("targets", ()))


def grouped(expression: str) -> set[str]:
    return {label.strip() for group in re.findall(r"by \(([^)]*)\)", expression) for label in group.split(",")}


def asked(expression: str) -> Iterator[tuple[str, str, bool]]:
    """(series, its selector, whether it is a range) of an expression."""
    for name, selector, span in SELECTOR.findall(re.sub(r"by \([^)]*\)", "", expression)):
        if name not in WORDS:
            yield name, selector, bool(span)


@pytest.mark.parametrize("path", FILES)
def test_what_is_made_from_the_tables_is_as_they_are(path: str) -> None:
    assert (ROOT / path).read_text("utf-8") == FILES[path](), "run: python -m tools.monitoring"


def test_every_expression_asks_for_metrics_and_labels_that_there_are() -> None:
    for expression in {*expressions()}:
        found = list(asked(expression))
        assert found, expression
        for name, selector, span in found:
            assert name in KNOWN, f"{name} in {expression}"
            metric = KNOWN[name]
            labels = {label for label, _ in metric.labels}
            assert {*re.findall(r"(\w+)!?=", selector)} <= labels, expression
            whole = name.startswith("tasker_dlq_time_in_queue_hours")  # too rare for a rate
            assert span == (metric.kind != "gauge") or whole, f"a rate of a counter, and of nothing else: {expression}"
        known = {label for name, _, _ in found for label, _ in KNOWN[name].labels}
        assert grouped(expression) <= known | {"le"}, expression


def test_quantiles_are_of_rates_of_buckets_summed_by_their_ends() -> None:
    quantiles = [each for each in expressions() if "histogram_quantile" in each]
    assert quantiles
    for expression in quantiles:
        assert re.fullmatch(
            r"histogram_quantile\(0\.\d+, sum by \(le(?:, \w+)?\) \(rate\(\w+_bucket(\{[^}]*\})?\[.*\]\)\)\)( > \d+)?",
            expression,
        )


def test_every_alert_says_how_bad_it_is_and_what_to_do() -> None:
    groups = yaml.safe_load(rules())["groups"]
    assert "tasker_backpressure" in [group["name"] for group in groups]
    page = (ROOT / "docs/reference/metrics.md").read_text("utf-8")
    for rule in (rule for group in groups for rule in group["rules"]):
        assert rule["labels"]["severity"] in ("info", "warning", "critical")
        assert {*rule["annotations"]} == {"summary", "description", "runbook"}
        assert f"### {rule['alert']}\n" in page
        assert rule["annotations"]["runbook"] == f"docs/reference/metrics.md#{rule['alert'].lower()}"


def test_a_graver_bound_is_never_below_a_lesser_one() -> None:
    for alert in ALERTS:
        assert [bound.value for bound in alert.bounds] == sorted(bound.value for bound in alert.bounds), alert.name


def test_every_published_name_is_told_or_said_to_be_elsewhere_and_why() -> None:
    elsewhere = {name for names, _, _ in ELSEWHERE for name in names.split(", ")}
    published = {*(ROOT / "tests/data/published_metrics.txt").read_text("utf-8").split()}
    assert published <= {*METRICS} | elsewhere
    assert elsewhere <= published - {*METRICS}
    for _, here, _ in ELSEWHERE:
        named = re.findall(r"(?:tasker|mpsc|worker|api|domain)_\w+", here)
        assert here == "not applicable" or (named and {*named} <= {*SERIES, *METRICS}), here


def test_what_published_dashboards_draw_is_drawn() -> None:
    published = {*(ROOT / "tests/data/published_panels.txt").read_text("utf-8").split()}
    panels = [panel for panel in json.loads(dashboard())["panels"] if panel["type"] != "row"]
    drawn = {KNOWN[name].name for panel in panels for each in panel["targets"] for name, *_ in asked(each["expr"])}
    assert published - drawn == set()


def test_names_carry_their_units() -> None:
    for metric in METRICS.values():
        assert (metric.kind == "counter") == metric.name.endswith("_total"), metric.name
        assert metric.kind != "histogram" or metric.name.endswith(UNITS), metric.name


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed: its own check is left out")
def test_promtool_accepts_the_rules() -> None:
    subprocess.run(["promtool", "check", "rules", ROOT / "deploy/prometheus/tasker.rules.yaml"], check=True)
