"""Waiting for tasks when notices are lost, others arrive all the time, and a database refuses to send any."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from tasker.clock import BackoffPolicy
from tasker.engine.fleet_rules import FleetRules
from tasker.errors import DatabaseError
from tasker.process import heartbeat
from tasker.process.connections import Engines
from tasker.services.submission.submit import SubmissionResult
from tasker.services.tasks import waiting as waiters
from tasker.services.tasks.waiting import REGISTER, WaiterRegistration, Waiters
from tests.support.servers.silent import silent_server

PATIENCE = 30
OFTEN = 0.005


class Database:
    """Which tasks have ended; it refuses to register who waits if told so."""

    def __init__(self, *ended: str, refuses: bool = False) -> None:
        self.ended, self.refuses, self.looked = {*ended}, refuses, asyncio.Event()
        self.asked: list[str] = []

    async def ask(self, statement: str, params: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        if statement != REGISTER:
            self.looked.set()
            tasks = params["tasks"].strip("{}").split(",")
            self.asked += tasks
            return [(task, True) for task in tasks if task in self.ended]
        if self.refuses:
            raise DatabaseError("permission denied for table tasks")
        return [({"told": json.loads(params["args"])["tasks"]},)]


class Task:
    """One whose end is told before it has come; `read` answers whether it has."""

    def __init__(self) -> None:
        self.ended, self.reads = False, 0
        self.read_once = asyncio.Event()

    async def read(self) -> bool:
        self.reads += 1
        self.read_once.set()
        return self.ended


class Listener:
    def __init__(self, listens: bool) -> None:
        self.is_listening = self.useful = listens

    def open(self) -> None: ...

    def rest(self) -> None: ...

    async def close(self) -> None: ...


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Still much longer than the time between two notices, or two that begin to wait."""
    monkeypatch.setattr(waiters, "POLLS", BackoffPolicy(OFTEN * 10, OFTEN * 10))
    monkeypatch.setattr(waiters, "NOTIFIED", BackoffPolicy(OFTEN * 10, OFTEN * 10))


async def test_a_lost_notice_is_made_up_for_while_others_arrive_all_the_time() -> None:
    database, others = Database(), [f"other {number}" for number in range(1000)]
    waiting = Waiters(database.ask, "me", lambda heard: Listener(True), watches=False)
    waiting.submitted(WaiterRegistration("me"), [SubmissionResult(name, 1) for name in ["lost", *others]])
    lost = asyncio.create_task(waiting.wait("lost"))
    await asyncio.sleep(0)
    async with asyncio.timeout(PATIENCE):
        for number, name in enumerate(others):
            other = asyncio.create_task(waiting.wait(name))
            await asyncio.sleep(OFTEN)
            database.ended |= {name} | ({"lost"} if number == 3 else set())
            waiting.on_notification([name])
            await other
            if lost.done():
                break
    found = lost.done()
    lost.cancel()
    await waiting.close()

    assert found


async def test_who_reads_a_task_at_its_end_asks_for_nothing_else_and_believes_no_notice_that_came_too_soon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(waiters, "NOTIFIED", BackoffPolicy(PATIENCE * 10, PATIENCE * 10))
    database, task = Database(), Task()
    waiting = Waiters(database.ask, "me", lambda heard: Listener(True), watches=False)
    waiting.submitted(WaiterRegistration("me"), [SubmissionResult("task", 1)])
    reading = asyncio.create_task(waiting.read("task", task.read, shows_end=lambda ended: ended))
    async with asyncio.timeout(PATIENCE):
        await asyncio.sleep(0)
        waiting.on_notification(["task"])
        await task.read_once.wait()
        await asyncio.sleep(OFTEN)
        assert not reading.done()
        task.ended = True
        waiting.on_notification(["task"])
        assert await reading
    await waiting.close()

    assert task.reads == 2
    assert not database.looked.is_set()


async def test_who_only_waits_is_told_of_an_end_by_who_reads_it() -> None:
    task = Task()
    task.ended = True
    waiting = Waiters(Database().ask, "me", lambda heard: Listener(True), watches=False)
    waiting.submitted(WaiterRegistration("me"), [SubmissionResult("task", 1)])
    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        group.create_task(waiting.read("task", task.read, shows_end=lambda ended: ended))
        group.create_task(waiting.wait("task"))
        await asyncio.sleep(0)
        waiting.on_notification(["task"])
    await waiting.close()


async def test_a_program_with_a_worker_looks_while_ever_more_tasks_are_waited_for() -> None:
    waiting = Waiters(Database("elsewhere").ask, "me", lambda heard: Listener(False), watches=True)
    first = asyncio.create_task(waiting.wait("elsewhere"))
    more: list[asyncio.Task[None]] = []
    for number in range(1000):
        more.append(asyncio.create_task(waiting.wait(f"other {number}")))
        await asyncio.sleep(OFTEN)
        if first.done():
            break
    found = first.done()
    for task in (first, *more):
        task.cancel()
    await waiting.close()

    assert found


async def test_of_many_that_begin_to_wait_one_after_another_each_is_looked_at_once_if_its_end_will_be_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for pauses in ("NOTIFIED", "POLLS"):
        monkeypatch.setattr(waiters, pauses, BackoffPolicy(PATIENCE * 10, PATIENCE * 10))
    database, tasks = Database(), [f"task {number}" for number in range(30)]
    waiting = Waiters(database.ask, "me", lambda heard: Listener(True), watches=False)
    joined = []
    async with asyncio.timeout(PATIENCE):
        for task in tasks:
            joined.append(asyncio.create_task(waiting.wait(task)))
            while task not in database.asked:
                await asyncio.sleep(0)
        database.ended |= {*tasks}
        waiting.on_notification(tasks)
        await asyncio.gather(*joined)
    await waiting.close()

    assert database.asked == [*tasks, *database.asked[len(tasks) :]]
    assert sorted(database.asked[len(tasks) :]) == sorted(tasks)


async def test_a_task_that_could_not_be_looked_at_when_it_was_new_is_looked_at_soon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(waiters, "NOTIFIED", BackoffPolicy(OFTEN, PATIENCE * 10))
    database, fails = Database("task"), ["first look"]

    async def ask(statement: str, params: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        if statement != REGISTER and fails:
            raise DatabaseError(fails.pop())
        return await database.ask(statement, params)

    waiting = Waiters(ask, "me", lambda heard: Listener(True), watches=False)
    waiting.submitted(WaiterRegistration("me"), [SubmissionResult("other", 1)])
    other = asyncio.create_task(waiting.wait("other"))
    for _ in range(20):  # the pauses have become long
        waiting._due = 0.0
        waiting._changed.set()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    fails.append("the look at the new one")
    await asyncio.wait_for(waiting.wait("task"), PATIENCE)
    other.cancel()
    await waiting.close()

    assert fails == []


async def test_a_program_that_may_not_register_looks_all_the_same() -> None:
    waiting = Waiters(Database("task", refuses=True).ask, "me", lambda heard: Listener(True), watches=False)
    await asyncio.wait_for(waiting.wait("task"), PATIENCE)
    await waiting.close()


async def test_a_task_whose_end_was_missed_while_it_was_submitted_is_looked_at_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(waiters, "NOTIFIED", BackoffPolicy(PATIENCE * 10, PATIENCE * 10))
    database = Database("task")
    waiting = Waiters(database.ask, "me", lambda heard: Listener(True), watches=False)
    other = asyncio.create_task(waiting.wait("another"))
    await asyncio.sleep(0)
    submission = waiting.register(awaited=True)
    waiting.recheck()  # the notifications begin, or begin again: this one's end came before
    async with asyncio.timeout(PATIENCE):
        await database.looked.wait()
        waiting.submitted(submission, [SubmissionResult("task", 1)])
        await waiting.wait("task")
    other.cancel()
    await waiting.close()


async def test_a_process_that_ends_does_not_wait_for_a_silent_database_to_tell_of_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(heartbeat, "TELL_SECONDS", 0.05)
    messaging: Any = SimpleNamespace(backend=SimpleNamespace())
    async with silent_server() as silent:
        url = f"postgresql://nobody@127.0.0.1:{silent.port}/none?connect_timeout=600"
        engines = Engines(url, messaging, FleetRules())
        engines.notices.note({"task": "somebody"})
        await asyncio.wait_for(engines.close(), PATIENCE)

        assert silent.asked.is_set()
