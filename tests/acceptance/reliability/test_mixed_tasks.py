"""Mixed tasks of all examples while processes of every kind are killed: the short form of `make test-chaos`."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from tests.support.fleets.fleet import Fleet
from tests.support.fleets.mayhem import WITHOUT_CHILDREN, Mayhem
from tests.support.fleets.oracle import Oracle
from tests.support.servers import brokers

SEED = int(os.environ.get("TASKER_CHAOS_SEED", "1"))
TASKS, KILLS = 40, 5

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("server", ["embedded"], indirect=True)]


@pytest.mark.parametrize(
    ("backend", "path"),
    [
        pytest.param("pgmq", "queued", marks=pytest.mark.servers),
        pytest.param("rabbitmq", "inline", marks=pytest.mark.long),
    ],
)
def test_every_task_ends_as_its_case_says_while_processes_of_every_kind_are_killed(
    database_url: str, new_fleet: Callable[..., Fleet], oracle: Oracle, made: ExitStack, backend: str, path: str
) -> None:
    broker = "" if backend == "pgmq" else made.enter_context(brokers.private_server(brokers.RABBITMQ)).url
    mayhem = Mayhem(new_fleet(backend=backend, broker=broker), oracle, database_url, backend, TASKS, 0.3, SEED)

    mayhem.start(path, workers=1)
    mayhem.kill(KILLS)
    mayhem.end()

    print(mayhem.told())
    oracle.check_mixture(mayhem.tasks)
    oracle.check_repairs(**mayhem.explained())


def test_without_faults_every_task_is_exact_and_nothing_is_repaired(
    database_url: str, new_fleet: Callable[..., Fleet], oracle: Oracle
) -> None:
    mayhem = Mayhem(new_fleet(), oracle, database_url, "pgmq", 2 * TASKS, 0.0, SEED)

    mayhem.start("queued", workers=2, kinds=WITHOUT_CHILDREN)
    mayhem.end()

    oracle.check_mixture(mayhem.tasks)
    assert (dict(+oracle.repairs()), oracle.failures("worker_lost"), oracle.refused()) == ({}, 0, 0)


@pytest.mark.long
def test_a_broker_that_is_killed_and_started_again_in_the_middle_loses_no_task(
    database_url: str, new_fleet: Callable[..., Fleet], oracle: Oracle, made: ExitStack
) -> None:
    server = made.enter_context(brokers.private_server(brokers.REDIS))
    fleet = new_fleet(backend="redis", broker=server.url)
    mayhem = Mayhem(fleet, oracle, database_url, "redis", TASKS, 0.05, SEED, supervised=True)

    mayhem.start("inline", workers=2, kinds=("submitter", "worker"))
    mayhem.kill(2, lambda number: server.restart())
    mayhem.end()

    oracle.check_mixture(mayhem.tasks)
    oracle.check_repairs(**mayhem.explained())
