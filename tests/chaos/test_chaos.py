"""The long run: hundreds of mixed tasks while processes, servers and messages fail. `make test-chaos`.

Seeded: TASKER_CHAOS_SEED (default 1), TASKER_CHAOS_TASKS (default 250). Bounded by the number of kills and by time.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.chaos.conftest import BACKENDS, SEED, Setting
from tests.support import clocks
from tests.support.fleets.freezing import busiest, freeze_with_results
from tests.support.fleets.mayhem import HOLDS, WITHOUT_CHILDREN, Mayhem
from tests.support.fleets.mixture import SLOW
from tests.support.waiting import until

FAULTS = "drop:0.02,dup:0.02,delay:0.05"
LIMIT = 600.0
FROZEN = 12
"""Sessions that two frozen workers have at most."""

Make = Callable[..., Setting]


def judge(setting: Setting, mayhem: Mayhem, **further: int) -> None:
    """Everything ends as its case says, and faults and kills explain every repair.

    Of `further` kinds of repairs there may be so many.
    """
    mayhem.end(LIMIT)
    print(f"\n{mayhem.told()}")
    setting.oracle.check_mixture(mayhem.tasks)
    setting.oracle.check_repairs(**mayhem.explained(), **further)


@pytest.mark.parametrize("path", ["inline", "queued"])
@pytest.mark.parametrize("backend", ["pgmq", "rabbitmq"])
def test_tasks_survive_kills_of_every_kind_of_process(setting: Make, backend: str, path: str) -> None:
    ground = setting(backend)
    mayhem = ground.mayhem()
    mayhem.start(path, workers=2)
    mayhem.kill(24)
    judge(ground, mayhem)
    assert ground.oracle.failures("worker_lost") > 0


@pytest.mark.parametrize("backend", BACKENDS)
def test_tasks_survive_kills_and_messages_that_are_lost_doubled_and_late(setting: Make, backend: str) -> None:
    ground = setting(backend, chaos=FAULTS, seed=SEED)
    mayhem = ground.mayhem(0.2)
    mayhem.start("queued", workers=2)
    mayhem.kill(5)
    judge(ground, mayhem)
    assert ground.fleet.faults().total() > 0


@pytest.mark.parametrize("backend", ["rabbitmq", "redis", "nats"])
def test_tasks_survive_a_broker_that_is_killed_and_started_again(setting: Make, backend: str) -> None:
    ground = setting(backend)
    mayhem = ground.mayhem(0.3, supervised=True)
    mayhem.start("queued", workers=2, kinds=WITHOUT_CHILDREN)
    assert ground.broker is not None
    broker = ground.broker
    mayhem.kill(3, lambda number: broker.restart())
    judge(ground, mayhem)


@pytest.mark.parametrize(("backend", "path"), [("pgmq", "inline"), ("pgmq", "queued"), ("rabbitmq", "queued")])
def test_tasks_survive_a_database_that_is_killed_and_started_again(setting: Make, backend: str, path: str) -> None:
    ground = setting(backend)
    mayhem = ground.mayhem(0.4, supervised=True)
    mayhem.start(path, workers=2, kinds=WITHOUT_CHILDREN)
    mayhem.kill(3, lambda number: ground.restart_postgres())
    judge(ground, mayhem)


@pytest.mark.parametrize("path", ["inline", "queued"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_late_results_of_a_frozen_worker_are_refused(setting: Make, backend: str, path: str) -> None:
    ground = setting(backend)
    fleet, oracle = ground.fleet, ground.oracle
    mayhem = ground.mayhem(0.4, seconds=0.5)
    mayhem.start(path, workers=2, kinds=WITHOUT_CHILDREN)
    until(lambda: oracle.finished() > 0, "work is under way")
    workers = ["worker0", "worker1"]
    mayhem.frozen = freeze_with_results(fleet, oracle, ground.postgres.url, workers, mayhem.more)
    judge(ground, mayhem, frozen_client=FROZEN)


@pytest.mark.parametrize("backend", BACKENDS)
def test_leases_and_delays_follow_the_database_whatever_the_clocks_of_the_processes(
    setting: Make, backend: str
) -> None:
    ground = setting(backend)
    fleet, oracle = ground.fleet, ground.oracle
    fleet.worker("ahead", str(SLOW), "--concurrency", "8", environment=clocks.wrong_by("+3600"))
    fleet.worker("behind", str(SLOW), "--concurrency", "8", environment=clocks.wrong_by("-60"))
    command = [ground.postgres.url, backend, "20", "1.0", "1", "--slow"]
    fleet.program("submitter", "-m", "tests.support.fleets.submitting", *command)
    until(lambda: oracle.finished() > 0, "work is under way")
    assert (oracle.failures("worker_lost"), dict(+oracle.repairs())) == (0, {})
    fleet.kill(busiest(fleet, oracle))
    until(lambda: oracle.finished() == 20, "all tasks are final")
    assert oracle.rows("select distinct state from tasker.tasks") == [("complete",)]
    oracle.check_promises()
    oracle.check_repairs(hint_lost=HOLDS * 8 if ground.broker else 0)
