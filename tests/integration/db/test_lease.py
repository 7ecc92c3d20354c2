"""Keeping a lease: a worker that cannot renew it gives up its steps in time, whatever hangs (rule 12)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import uuid4

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tasker.clock import SystemClock
from tasker.db.connection import SyncConnection
from tasker.process.lease import LeaseKeeper
from tests.support.fleets.swallowing import relay
from tests.support.waiting import until


class StandingClock:
    def monotonic(self) -> float:
        return 0.0

    def now(self) -> datetime:
        return datetime.now(UTC)


def register(connection: psycopg.Connection, worker: str) -> None:
    entry = {"action": "start", "worker": worker, "lease_ms": 60_000, "host": "here", "pid": 1, "concurrency": 1}
    connection.execute("select tasker.worker_v1(%s)", [Jsonb({**entry, "namespaces": [], "callables": []})])


async def test_a_worker_whose_connection_is_swallowed_fences_itself_though_no_answer_comes(database_url: str) -> None:
    worker, fenced = str(uuid4()), list[str]()
    has_beaten = "select beat_at > started_at from tasker.workers where worker_uuid = %s"
    async with relay(database_url) as network:
        with psycopg.connect(database_url, autocommit=True) as observer:
            register(observer, worker)
            keeper = LeaseKeeper(
                SyncConnection(network.url),
                SystemClock(),
                worker=worker,
                lease_ms=1500,
                in_hand=lambda: [],
                on_lost=lambda steps: None,
                on_fenced=lambda: fenced.append(worker),
            )
            keeper.start()
            try:
                await asyncio.to_thread(
                    until, lambda: observer.execute(has_beaten, [worker]).fetchone() == (True,), "it has beaten"
                )
                network.passes.clear()
                await asyncio.to_thread(until, lambda: bool(fenced), "it has fenced itself", limit=30)
            finally:
                network.passes.set()
                await asyncio.to_thread(keeper.stop)
    assert fenced == [worker], "once, also when an answer comes after all"


def test_a_worker_that_the_registry_does_not_know_is_fenced_by_its_first_beat(database_url: str) -> None:
    fenced = threading.Event()
    keeper = LeaseKeeper(
        SyncConnection(database_url),
        StandingClock(),
        worker=str(uuid4()),
        lease_ms=300,
        in_hand=lambda: [],
        on_lost=lambda steps: None,
        on_fenced=fenced.set,
    )
    keeper.start()
    try:
        assert fenced.wait(30)
    finally:
        keeper.stop()


def test_a_beat_that_fails_in_an_unforeseen_way_is_logged_and_followed_by_the_next(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tried_again = threading.Event()

    def in_hand() -> Sequence[tuple[str, int]]:
        if "lease_beat_failed" in caplog.text:
            tried_again.set()
        raise RuntimeError("unforeseen")

    keeper = LeaseKeeper(
        SyncConnection("postgresql://nobody@127.0.0.1:1/none"),
        StandingClock(),
        worker="w",
        lease_ms=300,
        in_hand=in_hand,
        on_lost=lambda steps: None,
        on_fenced=lambda: None,
    )
    keeper.start()
    try:
        assert tried_again.wait(30)
    finally:
        keeper.stop()
    assert "unforeseen" in caplog.text


def test_a_beat_that_hangs_ends_within_its_limit(database_url: str) -> None:
    lease = SyncConnection(database_url)
    limits = "'statement', current_setting('statement_timeout'), 'lock', current_setting('lock_timeout')"
    answer = lease.call(f"jsonb_build_object({limits}, 'asked', %s::jsonb)", {}, limit_ms=1234)
    assert lease._connection is not None
    network = lease._connection.info.get_parameters()
    lease.close()

    assert (answer["statement"], answer["lock"]) == ("1234ms", "1234ms")
    assert (network["connect_timeout"], network["tcp_user_timeout"]) == ("2", "1234")
