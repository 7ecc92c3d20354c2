"""Alerts fire from their bounds on and not below, also where several servers tell the same of the fleet."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.monitoring.promql import Scrapes, Vector
from tests.support.monitoring.promtool import differences
from tests.support.repository import ROOT
from tests.support.tables import for_each
from tools.monitoring.alerts import ALERTS
from tools.monitoring.catalogue import METRICS, Told
from tools.monitoring.dashboard import dashboard
from tools.monitoring.published import ALERTS_ELSEWHERE

BY_NAME = {alert.name: alert for alert in ALERTS}
SECONDS = 300
PANELS = [target["expr"] for panel in json.loads(dashboard())["panels"] for target in panel.get("targets", ())]
EXPRESSIONS = [
    *(alert.signal for alert in ALERTS),
    *(expression.replace("$__rate_interval", "5m") for expression in PANELS),
]
OF_THE_FLEET = [metric for metric in METRICS.values() if "fleet" in metric.tellers]


def fires(name: str, before: str, after: str) -> list[str]:
    """The severities of which this alert is one, five minutes after the first scrape."""
    scrapes = Scrapes()
    scrapes.add(0, {"one": before}, job="tasker")
    scrapes.add(SECONDS, {"one": after}, job="tasker")
    return [bound.severity for bound in BY_NAME[name].bounds if scrapes.ask(BY_NAME[name].expression(bound))]


def asked() -> Iterator[tuple[str, str, str]]:
    """Alerts with what is scraped before and after; what does not fire is far
    below its bound, since Prometheus reckons how a counter grows beyond the scrapes, too."""
    for name, series, values in GAUGES:
        yield from ((name, f"{series} {value}\n", f"{series} {value}\n") for value in values)
    for name, series, expected in COUNTERS:
        for grown, severities in expected.items():
            yield name, f"{series} 1000\n", f"{series} {1000 + grown // (1 if severities else 2)}\n"
    for name, part, whole, least, _ in SHARES:
        for percent in (least - 1, least + 1):
            now = f"{part} {percent}\n{whole} 100\n"
            yield name, now if whole in OF_NOW else f"{part} 0\n{whole} 0\n", now
    for name, series, bound in MEANS:
        for mean in (bound // 2, bound + 1):
            yield (
                name,
                f"{series}_sum 1e9\n{series}_count 1e6\n",
                f"{series}_sum {1e9 + 4 * mean}\n{series}_count {1e6 + 4}\n",
            )


GAUGES = [
    ("TaskerCircuitBreakerOpen", "api_circuit_breaker_state", {1: [], 2: ["critical"]}),
    ("TaskerCircuitBreakerHalfOpen", "api_circuit_breaker_state", {0: [], 1: ["warning"], 2: []}),
    ("TaskerCircuitBreakerHalfOpen", 'tasker_circuit_breaker_state{component="x"}', {0: [], 1: ["warning"], 2: []}),
    ("TaskerComponentCircuitBreakerOpen", 'tasker_circuit_breaker_state{component="x"}', {1: [], 2: ["warning"]}),
    ("TaskerMessagingCircuitBreakerOpen", 'tasker_circuit_breaker_state{component="messaging"}', {2: ["critical"]}),
    ("TaskerMessagingCircuitBreakerOpen", 'tasker_circuit_breaker_state{component="x"}', {2: []}),
    ("TaskerDatabaseDown", "tasker_database_up", {1: [], 0: ["critical"]}),
    ("TaskerNoWorkers", 'tasker_workers{kind="worker",state="live"}', {1: []}),
    ("TaskerNoWorkers", 'tasker_workers{kind="worker",state="lost"}', {1: ["critical"]}),
    ("TaskerChannelSaturated", 'mpsc_channel_usage_percent{channel="completion"}', {80: [], 85: ["warning"]}),
    ("TaskerHandlerWaitTimeHigh", "worker_handler_semaphore_wait_oldest_ms", {501: ["warning"]}),
    ("TaskerEventListenerDown", 'tasker_event_listener_active{mode="hybrid"}', {1: [], 0: ["warning"]}),
    ("TaskerEventListenerLag", 'tasker_event_listener_lag_ms{mode="hybrid"}', {100: [], 101: ["warning"]}),
    ("TaskerPollingFallback", 'tasker_polling_fallback_active{mode="hybrid"}', {0: [], 1: ["warning"]}),
    ("HighPendingDLQInvestigations", "tasker_dlq_pending_investigations", {50: [], 51: ["warning"]}),
    ("HighPendingDLQInvestigations", "tasker_dlq_pending_investigations", {1001: ["warning", "critical"]}),
    ("TaskerQueueAgeHigh", 'tasker_queue_age_seconds{namespace="shop"}', {300: [], 301: ["warning"]}),
    ("StaleCheckpoint", 'tasker_checkpoint_age_seconds{namespace="shop"}', {600: [], 601: ["warning"]}),
]
COUNTERS = [
    ("TaskerFFISlowSendsHigh", "ffi_completion_slow_sends_total", {0: [], 1: ["warning"]}),
    ("TaskerChannelOverflow", 'mpsc_channel_full_events_total{channel="completion"}', {0: [], 1: ["info"]}),
    ("TaskerAPIRejectionsHigh", 'api_requests_rejected_total{reason="rate_limit"}', {25: [], 26: ["warning"]}),
    ("TaskerAPIRejectionsHigh", 'api_requests_rejected_total{reason="validation"}', {1000: []}),
    ("TaskerHighErrorRate", 'tasker_step_errors_total{namespace="shop"}', {3000: [], 3001: ["warning"]}),
    ("TaskerDatabaseAcquireErrors", "tasker_db_pool_acquire_errors_total", {0: [], 1: ["warning"]}),
    ("TaskerDatabaseAcquireErrors", "tasker_db_pool_acquire_errors_total", {51: ["warning", "critical"]}),
    ("TaskerModeSwitches", 'tasker_mode_switches_total{mode="hybrid"}', {20: [], 21: ["warning"]}),
    ("TaskerListenerReconnections", "tasker_listener_reconnections_total", {5: [], 6: ["info"]}),
    ("HighStalenessRate", "tasker_staleness_tasks_detected_total", {3000: [], 3001: ["critical"]}),
    ("TaskerAuthenticationFailures", 'tasker_auth_failures_total{reason="expired"}', {50: [], 51: ["warning"]}),
    ("TaskerRepairs", 'tasker_repairs_total{kind="orphans"}', {0: [], 1: ["info"]}),
    ("TaskerPluginBehind", 'tasker_plugin_dropped_total{plugin="logs"}', {0: [], 1: ["warning"]}),
]
SHARES = [
    ("TaskerDatabasePoolUtilizationHigh", "tasker_database_pool_active", "tasker_database_pool_max", 80, 96),
    ("TaskerDatabaseSlowAcquires", "tasker_db_pool_slow_acquires_total", "tasker_db_pool_acquires_total", 5, 21),
    ("TaskerPollingErrors", "tasker_polling_errors_total", "tasker_polling_cycles_total", 5, None),
    ("TaskerTaskFailuresHigh", "tasker_tasks_failures_total", "tasker_tasks_completions_total", 5, 12),
    ("TaskerAttemptFailuresHigh", "tasker_steps_failures_total", "tasker_steps_executions_total", 10, None),
    ("TaskerWorkersBusy", "tasker_worker_steps", "tasker_worker_slots", 90, None),
]
OF_NOW = ("tasker_database_pool_max", "tasker_worker_slots")
"""Of two gauges, not of what was counted lately."""
MEANS = [
    ("SlowStalenessDetection", "tasker_staleness_detection_duration_milliseconds", 5000),
    ("TaskerDatabaseAcquireTimeHigh", "tasker_db_pool_wait_duration_milliseconds", 50),
    ("TaskerPollingSlow", "tasker_polling_duration_seconds", 10),
]


@pytest.mark.parametrize(("name", "series", "expected"), GAUGES)
def test_a_gauge_fires_from_its_bound_on(name: str, series: str, expected: dict[int, list[str]]) -> None:
    for value, severities in expected.items():
        assert fires(name, f"{series} {value}\n", f"{series} {value}\n") == severities, value


@pytest.mark.parametrize(("name", "series", "expected"), COUNTERS)
def test_a_counter_fires_by_how_it_has_grown(name: str, series: str, expected: dict[int, list[str]]) -> None:
    for grown, severities in expected.items():
        assert fires(name, f"{series} 1000\n", f"{series} {1000 + grown}\n") == severities, grown


@pytest.mark.parametrize(("name", "part", "whole", "least", "critical"), SHARES)
def test_a_share_fires_in_percent(name: str, part: str, whole: str, least: int, critical: int | None) -> None:
    def at(percent: float) -> list[str]:
        zero, now = f"{part} 0\n{whole} 0\n", f"{part} {percent}\n{whole} 100\n"
        return fires(name, now if whole in OF_NOW else zero, now)

    assert at(least - 1) == []
    assert at(least + 1) == ["warning"]
    assert critical is None or at(critical) == ["warning", "critical"]


@pytest.mark.parametrize(("name", "series", "bound"), MEANS)
def test_a_mean_fires_by_what_was_seen_of_late(name: str, series: str, bound: int) -> None:
    before = f"{series}_sum 1e9\n{series}_count 10\n"
    for mean, severities in ((bound, []), (bound + 1, ["warning"])):
        assert fires(name, before, f"{series}_sum {1e9 + 4 * mean}\n{series}_count 14\n") == severities


def test_all_connections_in_use_are_told_beside_nearly_all() -> None:
    text = "tasker_database_pool_active 25\ntasker_database_pool_max 25\n"
    assert fires("TaskerDatabasePoolExhausted", text, text) == ["critical"]
    assert fires("TaskerDatabasePoolExhausted", text, text.replace("active 25", "active 24")) == []


def test_a_process_that_does_not_answer_is_told() -> None:
    scrapes, (bound,) = Scrapes(), BY_NAME["TaskerOrchestrationDown"].bounds
    scrapes.add(0, {"one": ""}, job="tasker")
    expression = BY_NAME["TaskerOrchestrationDown"].expression(bound)
    assert not scrapes.ask(expression)
    scrapes.at[-1] = (0, dict.fromkeys(scrapes.at[-1][1], 0.0))
    assert scrapes.ask(expression)


@pytest.mark.parametrize(
    ("endpoint", "ends", "severities"),
    [
        ("/v1/dlq", "250", ["warning"]),
        ("/v1/dlq", "10000", ["warning", "critical"]),
        ("/v1/dlq", "100", []),
        ("/v1/tasks", "10000", []),
        ("/v1/tasks/{uuid}", "10000", []),
    ],
)
def test_slow_answers_are_told_but_of_requests_that_may_wait(endpoint: str, ends: str, severities: list[str]) -> None:
    series = f'api_request_latency_ms_bucket{{endpoint="{endpoint}",le='
    before, after = (f'{series}"50"}} 0\n{series}"{ends}"}} {n}\n{series}"+Inf"}} {n}\n' for n in (0, 9))
    assert fires("TaskerAPILatencyHigh", before, after) == severities


def test_steps_that_nobody_takes_are_told_and_those_that_move_are_not() -> None:
    depth, taken = 'tasker_queue_depth{namespace="shop"} 3\n', 'tasker_steps_taken_total{namespace="shop"} '
    assert fires("TaskerQueueStuck", f"{depth}{taken}7\n", f"{depth}{taken}7\n") == ["critical"]
    assert fires("TaskerQueueStuck", f"{depth}{taken}7\n", f"{depth}{taken}8\n") == []


def test_every_alert_is_tried() -> None:
    tried = {each[0] for cases in (GAUGES, COUNTERS, SHARES, MEANS) for each in cases}
    others = {"TaskerOrchestrationDown", "TaskerDatabasePoolExhausted", "TaskerQueueStuck", "TaskerQueueDepthHigh"}
    others |= {"TaskerAPILatencyHigh"}
    others |= {"TaskerWorkerClaimRefusalsHigh", "TaskerDomainEventsDropped"}
    assert tried | others == {*BY_NAME}


@pytest.mark.parametrize("name", ["TaskerWorkerClaimRefusalsHigh", "TaskerDomainEventsDropped", "TaskerQueueDepthHigh"])
def test_each_graver_bound_fires_beside_the_lesser_one(name: str) -> None:
    series = {
        "TaskerWorkerClaimRefusalsHigh": 'worker_claim_refusals_total{reason="fenced"}',
        "TaskerDomainEventsDropped": 'mpsc_channel_full_events_total{channel="domain_events"}',
        "TaskerQueueDepthHigh": 'tasker_steps_ready{namespace="shop"} 0\ntasker_queue_depth{namespace="shop"}',
    }[name]
    lesser, graver = BY_NAME[name].bounds
    times = 1 if name == "TaskerQueueDepthHigh" else SECONDS / 60
    for value, severities in (
        (lesser.value, []),
        (lesser.value + 1, [lesser.severity]),
        (graver.value + 1, [lesser.severity, graver.severity]),
    ):
        assert fires(name, f"{series} 0\n", f"{series} {value * times}\n") == severities


def told(metric: Told, value: int) -> str:
    labels = ",".join(f'{name}="x"' for name, _ in metric.labels)
    named = f"{{{labels}}}" if labels else ""
    ends = ('le="1"', 'le="+Inf"')
    if metric.kind != "histogram":
        return f"{metric.name}{named} {value}\n"
    return "".join(f"{metric.name}_bucket{{{end}}} {value}\n" for end in ends)


@for_each(EXPRESSIONS)
def test_several_servers_that_tell_the_same_of_the_fleet_change_no_answer(expression: str) -> None:
    def asked(*servers: str) -> set[tuple[frozenset[tuple[str, str]], float]]:
        scrapes = Scrapes()
        for seconds, value in ((0, 3), (SECONDS, 7)):
            text = "".join(told(metric, value) for metric in OF_THE_FLEET)
            scrapes.add(seconds, dict.fromkeys(servers, text), job="tasker")
        answer: Vector = scrapes.ask(expression)  # type: ignore[assignment]
        return {(frozenset(each for each in key if each[0] != "instance"), value) for key, value in answer.items()}

    assert asked("one") == asked("one", "two", "three")


def test_every_published_alert_is_one_or_is_said_to_be_elsewhere_and_why() -> None:
    published = {*(ROOT / "tests/data/published_alerts.txt").read_text("utf-8").split()}
    elsewhere = {name for name, _, _ in ALERTS_ELSEWHERE}
    assert published <= {*BY_NAME} | elsewhere
    assert elsewhere <= published - {*BY_NAME}
    assert all(here.strip("`") in BY_NAME or here == "not applicable" for _, here, _ in ALERTS_ELSEWHERE)


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed: Prometheus is not asked")
def test_prometheus_itself_answers_each_question_as_it_is_answered_here(tmp_path: Path) -> None:
    def questions() -> Iterator[tuple[Scrapes, str]]:
        for name, before, after in asked():
            scrapes = Scrapes()
            scrapes.add(0, {"one": before}, job="tasker")
            scrapes.add(SECONDS, {"one": after}, job="tasker")
            yield from ((scrapes, BY_NAME[name].expression(bound)) for bound in BY_NAME[name].bounds)
        of_three = Scrapes()
        for seconds, value in ((0, 3), (SECONDS, 7)):
            text = "".join(told(metric, value) for metric in METRICS.values())
            of_three.add(seconds, dict.fromkeys(("one", "two", "three"), text), job="tasker")
        yield from ((of_three, expression) for expression in EXPRESSIONS)

    assert differences(questions(), tmp_path) == ""
