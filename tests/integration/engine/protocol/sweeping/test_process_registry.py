"""What a process says of itself in the registry, by the methods that say it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import uuid4

import pytest

from tasker.db.connection import Connection, SyncConnection
from tasker.engine.process_registry import ProcessRegistry, Registration, Renewal, renew_lease
from tasker.services.fleet.overview import Workers
from tasker.views.fleet import WorkerInfo
from tests.support.engine_fixture import Lab


@pytest.fixture
async def connection(lab: Lab) -> AsyncIterator[Connection]:
    made = Connection(lab.url)
    yield made
    await made.close()


async def entry_of(connection: Connection, worker: str) -> WorkerInfo:
    (row,) = [row for row in await Workers(connection).list(stopped=True) if row.worker == worker]
    return row


async def test_a_process_enters_serves_more_drains_and_ends(lab: Lab, connection: Connection) -> None:
    registry, worker = ProcessRegistry(connection), str(uuid4())
    first = Registration(worker, 60_000, name="left", namespaces=["here"], callables=["a.b"], concurrency=3)
    more = Registration(worker, 60_000, namespaces=["here", "there"], callables=["a.b", "c.d"])

    (here,) = await registry.start(first)
    entered = await entry_of(connection, worker)
    assert [
        getattr(entered, field) for field in ("state", "name", "pid", "host", "namespaces", "callables", "concurrency")
    ] == [
        "live",
        "left",
        first.pid,
        first.host,
        ["here"],
        ["a.b"],
        3,
    ]
    assert here in await registry.serve(more)
    assert (await entry_of(connection, worker)).callables == ["a.b", "c.d"]
    await registry.drain(worker)
    assert (await entry_of(connection, worker)).state == "draining"
    await registry.stop(worker)
    assert (await entry_of(connection, worker)).state == "stopped"


async def test_only_a_process_that_is_entered_and_has_not_ended_renews_its_lease(connection: Connection) -> None:
    registry, worker = ProcessRegistry(connection), str(uuid4())
    assert not await registry.beat(worker, 60_000)
    await registry.start(Registration(worker, 60_000))
    assert await registry.beat(worker, 60_000)
    await registry.stop(worker)
    assert not await registry.beat(worker, 60_000)


def test_a_beat_that_names_steps_learns_which_of_them_are_lost(lab: Lab) -> None:
    lab.one.start_worker()
    _, claims = lab.running(lab.chain())
    ((step, token),) = [(claim["step"], claim["token"]) for claim in claims.values()]
    lease = SyncConnection(lab.url)
    try:
        assert renew_lease(lease, lab.one.worker, 60_000, [(step, token)], limit_ms=20_000) == Renewal(known=True)
        held = [(step, token + 1)]
        found = renew_lease(lease, lab.one.worker, 60_000, held, limit_ms=20_000)
        assert found == Renewal(known=True, lost=frozenset([step]))
        assert renew_lease(lease, str(uuid4()), 60_000, [], limit_ms=20_000) == Renewal(known=False)
    finally:
        lease.close()
