"""Rule 7 for submissions: who sleeps is woken behind the commit, with no further round trip, and nobody else is.

A notification holds a lock of the whole server until its transaction has reached the disk, so none may be sent in the
transaction that makes the tasks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tasker.clock import new_task_uuid
from tasker.db import migrate
from tasker.messaging import load_backend
from tasker.template.plan import Plan
from tests.integration.engine.protocol.messages.test_wakeups import heard, listener, mark
from tests.support.engine_fixture import Lab, Session
from tests.support.servers.private_postgres import copied, private_server
from tests.support.waiting import until


def submit(session: Session, plan: Plan, **entry: Any) -> Any:
    """One task in a transaction of its own, as programs submit."""
    template = session.core("register_template", {"hash": plan.hash, "plan": json.loads(plan.to_json())})["template"]
    tasks = [{"id": new_task_uuid(), "identity": str(uuid4()), **entry}]
    args = {**session.args(), "template": template, "tasks": tasks, "announce": False}
    del args["worker"]
    return session.value("call tasker.submit_and_wake_v1('tasker_pgmq.call_v1', %s, null)", json.dumps(args))


def asleep(lab: Lab, *namespaces: str) -> Session:
    """A worker that sleeps, of these namespaces or of the lab's."""
    worker = lab.session()
    worker.start_worker()
    if namespaces:
        serve: Mapping[str, Any] = {"action": "serve", "worker": worker.worker, "lease_ms": 0}
        worker.core("worker", {**serve, "namespaces": list(namespaces)})
    mark(worker, "sleep")
    return worker


def test_nobody_is_notified_of_a_submission_while_nobody_sleeps(lab: Lab) -> None:
    ears = listener(lab)
    lab.two.start_worker()
    asleep(lab, "elsewhere")

    answer = submit(lab.one, lab.chain(1))

    assert (len(answer["created"]), answer["sent"]) == (1, {lab.namespace: 1})
    assert heard(ears) == []
    assert len(lab.two.claim()) == 1


def test_all_who_sleep_are_woken_by_one_notification(lab: Lab) -> None:
    ears = listener(lab)
    asleep(lab)
    asleep(lab, "elsewhere", lab.namespace)

    submit(lab.one, lab.chain(1))

    assert heard(ears) == [f"@{lab.namespace}"]


def test_an_urgent_task_wakes_an_idle_worker_without_a_message(lab: Lab) -> None:
    ears = listener(lab)
    asleep(lab)

    answer = submit(lab.one, lab.chain(1), priority=10)

    assert (answer["sent"], lab.queue_depth()) == ({lab.namespace: 0}, 0)
    assert heard(ears) == [f"@{lab.namespace}"]


def test_a_sweep_wakes_workers_of_an_ordered_namespace(lab: Lab) -> None:
    lab.one.core("submit", {**_submission(lab), "announce": False})
    asleep(lab)
    ears = listener(lab)

    lab.one.call("repair", lab.one.args())

    assert heard(ears) == [f"@{lab.namespace}"]


def _submission(lab: Lab) -> dict[str, Any]:
    plan = lab.chain(1)
    register = {"hash": plan.hash, "plan": json.loads(plan.to_json())}
    template = lab.one.core("register_template", register)["template"]
    tasks = [{"id": new_task_uuid(), "identity": str(uuid4()), "priority": 1}]
    return {"window": 2000, "template": template, "tasks": tasks}


def test_a_duplicate_wakes_nobody(lab: Lab) -> None:
    identity = str(uuid4())
    submit(lab.one, lab.chain(1), identity=identity)
    asleep(lab)
    ears = listener(lab)

    assert submit(lab.one, lab.chain(1), identity=identity)["created"] == []

    assert heard(ears) == []


def test_a_worker_that_fell_asleep_while_the_submission_was_under_way_is_woken(lab: Lab) -> None:
    """Its last look is between the submission's beginning and its commit."""
    plan, identity = lab.chain(1), str(uuid4())
    lab.submit(plan)
    lab.one.run_all()
    ears = listener(lab)
    with lab.one.connection.transaction(force_rollback=True):
        lab.one.submit(plan, {"identity": identity})
        future = lab.later(submit, lab.two, plan, identity=identity)
        lab.waits(future, lab.two, on=lab.one)
        worker = asleep(lab)
        assert not worker.claim()

    assert len(future.result(timeout=60)["created"]) == 1
    assert heard(ears) == [f"@{lab.namespace}"]
    assert len(worker.claim()) == 1


def test_a_worker_whose_mark_was_not_seen_finds_the_task_by_the_look_behind_it(lab: Lab) -> None:
    ears = listener(lab)
    lab.two.start_worker()

    with lab.transaction(lab.two):
        mark(lab.two, "sleep")
        submit(lab.one, lab.chain(1))

    assert heard(ears) == []
    assert len(lab.two.claim()) == 1


def test_a_submission_that_can_wake_nobody_has_created_its_task(lab: Lab) -> None:
    """An error would say that there is no task."""
    lab.one.execute("set lock_timeout = '10ms'")
    plan = lab.chain(1)
    with lab.transaction(lab.two):
        lab.two.execute("lock table tasker.workers")
        answer = submit(lab.one, plan)

    assert lab.task(answer["created"][0]).state == "steps_in_process"


@pytest.fixture
def slow_lab(tmp_path: Path, cluster: Path) -> Iterator[Lab]:
    """On a server where a commit waits for ever, for a standby that there is not, if its session wants to be safe."""
    standby = {"wal_level": "replica", "max_wal_senders": "1", "synchronous_standby_names": "nobody"}
    with private_server(copied(cluster, tmp_path / "postgres"), {**standby, "synchronous_commit": "local"}) as server:
        migrate.upgrade(server.url, load_backend("pgmq", {}).install_sql())
        lab = Lab(server.url)
        yield lab
        lab.close()


@contextmanager
def slow_notification(lab: Lab) -> Iterator[Session]:
    """The session of somebody whose notification is being committed meanwhile."""
    slow = lab.session(options="-c synchronous_commit=on")

    def notify() -> None:
        with slow.connection.transaction():
            slow.execute("create table of_a_caller ()")
            slow.execute("notify tasker_work")

    notified = lab.later(notify)
    try:
        waiting = "select wait_event from pg_stat_activity where pid = %s"
        until(lambda: lab.observer.value(waiting, slow.pid) == "SyncRep", "it waits and holds the lock")
        yield slow
    finally:
        lab.observer.execute("select pg_cancel_backend(%s)", slow.pid)
        notified.result(timeout=60)


def test_submissions_are_committed_while_somebody_else_s_notification_waits_for_the_disk(slow_lab: Lab) -> None:
    lab, plan = slow_lab, slow_lab.chain(1)
    submit(lab.one, plan)  # makes the queue, which is announced
    with slow_notification(lab) as slow:
        assert lab.later(submit, lab.one, plan).result(timeout=60)["created"]
        asleep(lab)
        waking = lab.later(submit, lab.one, plan)
        lab.waits(waking, lab.one, on=slow)
        assert lab.observer.value("select count(*) from tasker.tasks") == 3, "only who wakes somebody has to wait"
    assert waking.result(timeout=60)["created"]
