"""What Prometheus scrapes from a fleet's ports: summed over the processes it is what the rows say, step by step."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tasker.metrics import MOST_SERIES
from tests.support.command_line import write_workflow
from tests.support.fleets.fleet import Fleet
from tests.support.monitoring.promql import Scrapes as Prometheus
from tests.support.servers.plain_http import PLAIN
from tests.support.waiting import until
from tools.monitoring.alerts import ALERTS
from tools.monitoring.catalogue import METRICS
from tools.monitoring.dashboard import dashboard

pytestmark = pytest.mark.slow

TASKS, STEPS = 3, 4
CHAIN = "".join(
    f"\n  - {{name: s{n}, handler: steps.fine{f', dependencies: [s{n - 1}]' if n else ''}}}" for n in range(STEPS)
)
HANDLERS = """
from tasker.step_handler import step_handler

@step_handler("steps.fine")
async def fine():
    return {}
"""
IDENTITY = {
    "tasker_tasks_requests_total": 1,
    "tasker_steps_enqueued_total": STEPS,
    "tasker_steps_claimed_total": STEPS,
    "tasker_steps_executions_total": STEPS,
    "tasker_steps_successes_total": STEPS,
    "tasker_steps_results_submitted_total": STEPS,
    "tasker_step_results_processed_total": STEPS,
    "tasker_tasks_completions_total": 1,
    "tasker_step_execution_duration_milliseconds_count": STEPS,
    "tasker_step_result_processing_duration_milliseconds_count": STEPS,
    "tasker_task_finalization_duration_milliseconds_count": 1,
    "tasker_task_duration_milliseconds_count": 1,
}
"""How often each is counted for one task of so many steps that all succeed at once."""
NOT_HERE = {
    "tasker_permission_denials_total",  # nobody is refused
    "tasker_auth_failures_total",
    "tasker_plugin_failures_total",
    "tasker_service_crashes_total",
    "tasker_repairs_total",
    "tasker_steps_held_by_breaker",
    "worker_claim_refusals_total",
    "tasker_queue_age_seconds",  # nothing waits or runs
    "tasker_checkpoint_age_seconds",
    "tasker_tasks_active",
    "tasker_timers_waiting",
    "tasker_timers_late_seconds",
    "tasker_steps_suspended",
    "tasker_incoming_events_unrouted",
    "tasker_child_tasks",  # no step waits for children
    "tasker_compensations_total",  # no effect is undone
    "tasker_limit_waiting",  # no step has a limit
    "tasker_limit_permits",
    "tasker_fair_rounds_total",  # no namespace is fair
    "tasker_tenant_submissions_total",  # no task has a tenant, and no submission a limit
    "tasker_submissions_refused_total",
}
"""What has values only when something happens that does not happen here."""
TIMES = (" ms", " s")
"""Units of alerts that a machine with too much to do may bring about."""
BUSY = {
    "TaskerChannelOverflow",
    "TaskerChannelSaturated",
    "TaskerCircuitBreakerHalfOpen",
    "TaskerComponentCircuitBreakerOpen",
    "TaskerDatabasePoolUtilizationHigh",
    "TaskerDatabaseSlowAcquires",
    "TaskerEventListenerDown",
    "TaskerFFISlowSendsHigh",
    "TaskerListenerReconnections",
    "TaskerPollingErrors",
    "TaskerPollingFallback",
    "TaskerRepairs",
    "TaskerWorkerClaimRefusalsHigh",
}
"""Other such alerts."""
QUIET = {
    "API rejections",
    "Attempts that fail",
    "Callers who are not let in",
    "Claim refusals",
    "Domain events",
    "Failures",
    "Oldest checkpoint of a running step",
    "Oldest step in a queue",
    "Open tasks",
    "Wait for a thread",
}
"""Panels with a question about what does not happen here."""
Scraped = Counter[tuple[str, frozenset[tuple[str, str]]]]


class Scrapes:
    """A fleet whose processes answer on ports, and what they tell."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet, self.numbers = fleet, count()

    def ports(self) -> list[str]:
        """Where the processes answer."""
        found = (re.findall(r"(http://\S+:\d+)", self.fleet.log(name)) for name in self.fleet.processes)
        return [url for urls in found for url in dict.fromkeys(urls)]

    def texts(self) -> list[str]:
        return [*self.scraped().values()]

    def scraped(self) -> dict[str, str]:
        """What each process tells, by where it answers."""
        return {url: PLAIN.get(f"{url}/metrics").text for url in self.ports()}

    def sums(self) -> Scraped:
        """Each sample by name and labels, summed over the processes as Prometheus would."""
        found: Scraped = Counter()
        for text in self.texts():
            for family in text_string_to_metric_families(text):
                for sample in family.samples:
                    found[sample.name, frozenset(sample.labels.items())] += sample.value  # type: ignore[assignment]
        return found

    def last_words(self) -> dict[str, str]:
        """The end of each log."""
        return {name: self.fleet.log(name)[-300:] for name in self.fleet.processes}

    def servers(self) -> list[str]:
        """Where the two servers answer."""
        logs = [self.fleet.log(name) for name in ("server", "another")]
        return [re.findall(r"listens on (http://\S+:\d+)", log)[0] for log in logs]

    def submit(self, namespace: str, number: int = TASKS) -> None:
        """Create tasks of the template in this namespace over HTTP, by one server after the other."""
        for n in range(number):
            body = {"namespace": namespace, "name": "chain", "version": "1.0.0", "context": {"n": next(self.numbers)}}
            answer = PLAIN.post(f"{self.servers()[n % 2]}/v1/tasks", json=body)
            assert answer.status_code == 201, answer.text


@pytest.fixture(scope="module")
def scrapes(module_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scrapes]:
    """Two servers, an orchestrator, a worker of two processes that parks its results, one that stores them itself."""
    folder = tmp_path_factory.mktemp("metrics")
    configuration = folder / "tasker.toml"
    configuration.write_text('[plugins]\nenabled = ["prometheus"]\n')
    fleet = Fleet(module_database_url, folder, environment={"TASKER_CONFIG_PATH": str(configuration)})
    try:
        parked, stored = workflow(folder, "parked"), workflow(folder, "stored")
        commands = {
            "server": ["server"],
            "another": ["server"],
            "orchestrator": ["orchestrator"],
            "parks": ["worker", str(parked), "--processes", "2", "--result-path", "queued"],
            "stores": ["worker", str(stored)],
        }
        for name, command in commands.items():
            fleet.program(name, "-m", "tasker", *command, "--port", "0", "--database-url", module_database_url)
        found = Scrapes(fleet)
        until(lambda: len(found.ports()) == 6, "all processes answer", limit=360, show=found.last_words)
        yield found
    finally:
        fleet.stop()


def workflow(folder: Path, namespace: str) -> Path:
    template = f"name: chain\nnamespace_name: {namespace}\nversion: 1.0.0\nsteps:{CHAIN}\n"
    return write_workflow(folder / namespace, template, HANDLERS)


@pytest.mark.parametrize("namespace", ["parked", "stored"])
def test_a_task_of_n_steps_is_counted_once_and_each_step_once_by_whoever_does_it(
    scrapes: Scrapes, namespace: str
) -> None:
    before = scrapes.sums()
    scrapes.submit(namespace)

    def counted() -> dict[str, float]:
        now = scrapes.sums()
        found = {name: total(now, name) - total(before, name) for name in IDENTITY}
        claimed, straight = "tasker_steps_claimed_total", {"claim_method": "handed_over"}
        found["tasker_steps_enqueued_total"] += total(now, claimed, **straight) - total(before, claimed, **straight)
        return found

    expected = {name: TASKS * number for name, number in IDENTITY.items()}
    until(lambda: counted() == expected, "all is counted", show=lambda: f"{counted()}\n{expected}")
    now, labels = scrapes.sums(), {"namespace": namespace}
    assert total(now, "tasker_steps_successes_total", **labels) == TASKS * STEPS
    assert total(now, "tasker_tasks_requests_total", **labels, task_type="chain") == TASKS
    assert total(now, "tasker_steps_failures_total") == 0


def test_every_metric_has_the_name_kind_and_labels_of_the_catalogue_in_every_process(scrapes: Scrapes) -> None:
    tellers = Counter[str]()
    for text in scrapes.texts():
        for family in text_string_to_metric_families(text):
            name = f"{family.name}_total" if family.type == "counter" else family.name
            told = METRICS[name]
            assert told.kind == family.type, name
            assert f"# HELP {name} {told.meaning}\n" in text
            tellers.update(told.tellers)
            for sample in family.samples:
                labels = {*sample.labels} - ({"le"} if sample.name.endswith("_bucket") else set())
                assert labels in ({name for name, _ in told.labels}, {"version"}), sample
    assert {*tellers} == {"fleet", "server", "process", "plugin"}


def test_every_metric_that_the_reference_tells_of_is_told_by_some_process(scrapes: Scrapes) -> None:
    scrapes.submit("stored")
    until(lambda: unseen(scrapes) == set(), "all are told", show=lambda: unseen(scrapes))


def unseen(scrapes: Scrapes) -> set[str]:
    """The metrics that no process names, but those of what has not happened in this fleet."""
    named = {name for text in scrapes.texts() for name in re.findall(r"^# TYPE (\S+)", text, re.MULTILINE)}
    return {*METRICS} - named - NOT_HERE


def test_no_metric_has_more_series_than_its_labels_allow_and_none_is_of_one_task_or_process(scrapes: Scrapes) -> None:
    for text in scrapes.texts():
        for family in text_string_to_metric_families(text):
            series = {frozenset((k, v) for k, v in each.labels.items() if k != "le") for each in family.samples}
            assert len(series) <= MOST_SERIES, family.name
            values = {value for labels in series for _, value in labels}
            assert not [value for value in values if re.search(r"[0-9a-f]{8}-[0-9a-f]{4}-", value)], family.name


def test_what_servers_read_of_the_fleet_is_the_same_whichever_is_asked(scrapes: Scrapes) -> None:
    def told() -> list[dict[str, float]]:
        scraped = scrapes.scraped()
        return [of_the_fleet(scraped[url]) for url in scrapes.servers()]

    def same() -> bool:
        one, other = told()
        return one == other and one["tasker_workers_active"] == 3

    until(same, "both say the same", show=told)


def of_the_fleet(text: str) -> dict[str, float]:
    """What is read from the database and does not change by the second."""
    found = (sample for family in text_string_to_metric_families(text) for sample in family.samples)
    named = {"/".join([each.name, *each.labels.values()]): each.value for each in found}
    steady = (
        "tasker_steps_taken",
        "tasker_repairs",
        "tasker_workers",
        "tasker_dlq",
        "pgmq_queue",
        "tasker_queue_depth",
    )
    return {name: value for name, value in named.items() if name.startswith(steady)}


def test_in_a_fleet_that_does_well_no_alert_fires_and_all_that_panels_ask_is_answered(scrapes: Scrapes) -> None:
    prometheus = Prometheus()
    until(lambda: total(scrapes.sums(), "tasker_event_listener_active", mode="hybrid") == 4, "all listen")
    for seconds in (0, 300):
        ended = total(scrapes.sums(), "tasker_tasks_completions_total")
        scrapes.submit("stored")
        until(lambda ended=ended: total(scrapes.sums(), "tasker_tasks_completions_total") == ended + TASKS, "they end")
        prometheus.add(seconds, scrapes.scraped(), job="tasker")
    firing = {
        f"{alert.name} {bound.severity}": found
        for alert in ALERTS
        for bound in alert.bounds
        if (found := prometheus.ask(alert.expression(bound))) and alert.name not in BUSY and alert.unit not in TIMES
    }
    assert firing == {}
    unanswered = {
        panel["title"]
        for panel in json.loads(dashboard())["panels"]
        for target in panel.get("targets", ())
        if not prometheus.ask(target["expr"].replace("$__rate_interval", "5m"))
    }
    assert unanswered <= QUIET


def total(found: Scraped, name: str, **labels: str) -> float:
    """The sum of the samples that have these labels."""
    return sum(value for (each, had), value in found.items() if each == name and labels.items() <= {*had})
