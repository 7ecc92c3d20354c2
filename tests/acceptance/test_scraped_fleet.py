"""What Prometheus scrapes from a fleet's ports: summed over the processes it is what the rows say, step by step."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.command_line import write_workflow
from tests.support.fleets.fleet import Fleet
from tests.support.waiting import until
from tools.monitoring.catalogue import METRICS

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
}
"""How often each is counted for one task of so many steps that all succeed at once (E-93)."""
Scraped = Counter[tuple[str, frozenset[tuple[str, str]]]]


class Scrapes:
    """A fleet whose processes answer on ports, and what they tell."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet

    def ports(self) -> list[str]:
        """Where the processes answer."""
        found = (re.findall(r"(http://\S+:\d+)", self.fleet.log(name)) for name in self.fleet.processes)
        return [url for urls in found for url in dict.fromkeys(urls)]

    def texts(self) -> list[str]:
        return [httpx.get(f"{url}/metrics").text for url in self.ports()]

    def sums(self) -> Scraped:
        """Each sample by name and labels, summed over the processes as Prometheus would."""
        found: Scraped = Counter()
        for text in self.texts():
            for family in text_string_to_metric_families(text):
                for sample in family.samples:
                    found[sample.name, frozenset(sample.labels.items())] += sample.value  # type: ignore[assignment]
        return found

    def submit(self, namespace: str, number: int = TASKS) -> None:
        """Create tasks of the template in this namespace over HTTP."""
        (server,) = re.findall(r"listens on (http://\S+:\d+)", self.fleet.log("server"))
        for n in range(number):
            body = {"namespace": namespace, "name": "chain", "version": "1.0.0", "context": {"n": n}}
            answer = httpx.post(f"{server}/v1/tasks", json=body)
            assert answer.status_code == 201, answer.text


@pytest.fixture(scope="module")
def scrapes(module_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scrapes]:
    """A server, an orchestrator, a worker of two processes that parks its results, and one that stores them itself."""
    folder = tmp_path_factory.mktemp("metrics")
    configuration = folder / "tasker.toml"
    configuration.write_text('[plugins]\nenabled = ["prometheus"]\n')
    fleet = Fleet(module_database_url, folder, environment={"TASKER_CONFIG_PATH": str(configuration)})
    try:
        parked, stored = workflow(folder, "parked"), workflow(folder, "stored")
        commands = {
            "server": ["server"],
            "orchestrator": ["orchestrator"],
            "parks": ["worker", str(parked), "--processes", "2", "--result-path", "queued"],
            "stores": ["worker", str(stored)],
        }
        for name, command in commands.items():
            fleet.program(name, "-m", "tasker", *command, "--port", "0", "--database-url", module_database_url)
        found = Scrapes(fleet)
        until(lambda: len(found.ports()) == 5, "all processes answer", limit=30, show=lambda: fleet.log("parks"))
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
    until(lambda: counted() == expected, "all is counted", limit=20, show=lambda: f"{counted()}\n{expected}")
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
    assert {*tellers} == {"server", "process", "plugin"}


def total(found: Scraped, name: str, **labels: str) -> float:
    """The sum of the samples that have these labels."""
    return sum(value for (each, had), value in found.items() if each == name and labels.items() <= {*had})
