"""A fleet moves to another messaging provider while tasks are in flight."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import Result

from tests.support.command_line import invoke
from tests.support.fleets.fleet import ROOT, Fleet
from tests.support.fleets.oracle import Oracle
from tests.support.servers.providers import Providers
from tests.support.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.servers, pytest.mark.parametrize("server", ["embedded"], indirect=True)]

SLOW = ROOT / "tests" / "chaos" / "workflow"
FEW, MANY = ("--concurrency", "2"), ("--concurrency", "50")
CONTEXTS = [{"seconds": 0.3, "n": n} for n in range(60)]
"""What takes a worker with a concurrency of 2 more than half a minute: it never ends before it is stopped."""


@pytest.fixture
def oracle(database_url: str) -> Iterator[Oracle]:
    judge = Oracle(database_url)
    yield judge
    judge.close()


@pytest.fixture
def providers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Providers]:
    made = Providers(tmp_path / "configuration.toml", "worker_chaos_queue")
    monkeypatch.setenv("TASKER_CONFIG_PATH", str(made.file))
    yield made
    made.remove()


class Switching:
    """Processes that read the test's configuration, some on the old provider and some on the new one."""

    def __init__(self, database_url: str, folder: Path) -> None:
        self._url, self._folder = database_url, folder
        self._fleets: dict[str, Fleet] = {}

    def on(self, provider: str) -> Fleet:
        """The processes on that provider."""
        if provider not in self._fleets:
            folder = self._folder / provider
            folder.mkdir()
            self._fleets[provider] = Configured(self._url, folder, backend=provider)
        return self._fleets[provider]

    def stop(self) -> None:
        for fleet in self._fleets.values():
            fleet.stop()


class Configured(Fleet):
    """Processes that start with the configuration file of the environment."""

    def worker(self, name: str, *arguments: str, **more: object) -> None:
        self._start(name, ["worker", str(SLOW), "--lease", "3", "--shutdown-timeout", "5", *arguments], {})

    def orchestrator(self, name: str, *arguments: object) -> None:
        self._start(name, ["orchestrator"], {})


@pytest.fixture
def fleets(database_url: str, tmp_path: Path) -> Iterator[Switching]:
    running = Switching(database_url, tmp_path)
    yield running
    running.stop()


def migrate(url: str, old: str, new: str, *options: str) -> Result:
    return invoke("broker", "migrate", "--from", old, "--to", new, *options, database=url)


def ended_steps(oracle: Oracle) -> int:
    return int(oracle.value("select count(*) from tasker.workflow_steps where state = 'complete'"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("pgmq", "rabbitmq"),
        *(
            pytest.param(old, new, marks=pytest.mark.long)
            for old, new in (("rabbitmq", "pgmq"), ("pgmq", "redis"), ("redis", "nats"))
        ),
    ],
)
def test_a_fleet_moves_to_another_provider_and_no_sweep_has_anything_to_repair(
    database_url: str, fleets: Switching, oracle: Oracle, providers: Providers, old: str, new: str
) -> None:
    providers.need(old, new)
    queued = ("--result-path", "queued")
    fleets.on(old).orchestrator("orchestrator")
    fleets.on(old).worker("worker", *queued, *FEW)
    tasks = providers.submit(database_url, old, SLOW, CONTEXTS)
    until(lambda: ended_steps(oracle) > 5, "work is under way")

    first = migrate(database_url, old, new)
    assert first.exit_code == 0, first.output
    assert "still on" in first.output
    refused = migrate(database_url, old, new, "--drain")
    assert refused.exit_code == 1
    assert f"still on {old}: " in refused.output
    for name in ("worker", "orchestrator"):
        fleets.on(old).signal(name, signal.SIGTERM)
        assert fleets.on(old).processes[name].wait(30) == 0, fleets.on(old).log(name)
    assert oracle.finished() < len(tasks)
    drained = migrate(database_url, old, new, "--drain")
    assert drained.exit_code == 0, drained.output
    assert f"removed from {old}: worker_chaos_queue" in drained.output
    assert "removed from" not in migrate(database_url, old, new, "--drain").output
    fleets.on(new).orchestrator("orchestrator")
    fleets.on(new).worker("worker", *queued, *MANY)

    oracle.wait_for_the_end(tasks)
    oracle.check(dict.fromkeys(tasks, "complete"))
    assert oracle.failures("worker_lost") == 0
    assert not +oracle.repairs()


def test_processes_on_both_providers_work_side_by_side_and_every_repair_is_explained(
    database_url: str, fleets: Switching, oracle: Oracle, providers: Providers
) -> None:
    providers.need("redis")
    fleets.on("pgmq").worker("worker", *FEW)
    tasks = providers.submit(database_url, "pgmq", SLOW, CONTEXTS)
    assert migrate(database_url, "pgmq", "redis").exit_code == 0
    fleets.on("redis").worker("worker", *MANY)
    before = ended_steps(oracle)
    until(lambda: ended_steps(oracle) > before + 5, "work is under way")
    fleets.on("pgmq").kill("worker")
    until(lambda: migrate(database_url, "pgmq", "redis", "--drain").exit_code == 0, "the lease of the dead one is over")

    oracle.wait_for_the_end(tasks)
    oracle.check(dict.fromkeys(tasks, "complete"))
    oracle.check_repairs(hint_lost=ended_steps(oracle))  # a hint to the one is missed by the sweeps of the other
