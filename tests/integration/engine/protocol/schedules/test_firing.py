"""Schedules fire each time once, whichever processes fire them, and survive deployments."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from tasker.engine.fire_plan import plan_fires
from tests.integration.engine.protocol.schedules.conftest import DAILY, Schedules


async def test_a_declared_schedule_fires_at_its_times(schedules: Schedules) -> None:
    await schedules.at("2026-01-01T12:00Z")
    await schedules.register('[{name: daily, cron: "0 2 * * *", context: {kind: audit}}]')
    assert await schedules.look() == 14 * 3_600_000
    assert schedules.history() == []
    assert schedules.next_at() == "02 02:00"

    await schedules.at("2026-01-02T01:59:59Z")
    assert schedules.due() == []
    await schedules.go("2026-01-02T02:00:00.1Z")

    assert schedules.history() == [("02 02:00", "schedule", "fired")]
    assert schedules.contexts() == [{"kind": "audit"}]
    assert schedules.next_at() == "03 02:00"
    schedules.finish()


async def test_the_context_has_the_times_of_the_fire(schedules: Schedules) -> None:
    await schedules.at("2026-03-28T12:00Z")
    await schedules.register(
        '[{name: daily, cron: "30 0 * * *", timezone: Europe/Berlin, overlap: allow, '
        "context_from: {at: fire_time, day: fire_date, since: previous_fire_time, by: schedule}}]"
    )
    await schedules.go("2026-03-28T12:00Z", "2026-03-28T23:30Z", "2026-03-29T22:30Z")

    assert schedules.contexts() == [
        {"at": "2026-03-29T00:30:00+01:00", "day": "2026-03-29", "since": None, "by": "daily"},
        {"at": "2026-03-30T00:30:00+02:00", "day": "2026-03-30", "since": "2026-03-29T00:30:00+01:00", "by": "daily"},
    ]


async def test_two_processes_fire_a_time_once(schedules: Schedules) -> None:
    await schedules.at("2026-01-01T12:00Z")
    await schedules.register(DAILY)
    await schedules.go("2026-01-01T12:00Z")
    await schedules.at("2026-01-02T02:00:01Z")
    due = schedules.due()

    await asyncio.gather(
        *(process.firing.fire_all(due) for process in (schedules.one, schedules.two) for _ in range(5))
    )

    assert schedules.history() == [("02 02:00", "schedule", "fired")]
    assert len(schedules.contexts()) == 1


async def test_a_decision_from_an_earlier_state_writes_nothing(schedules: Schedules) -> None:
    await schedules.at("2026-01-01T12:00Z")
    await schedules.register(DAILY)
    await schedules.go("2026-01-01T12:00Z")
    await schedules.at("2026-01-02T02:00:01Z")
    (schedule,) = schedules.due()
    stale = await schedules.two.firing.state(schedule)
    assert stale is not None
    await schedules.look()

    answer = await schedules.two.firing._write(stale, plan_fires(stale))

    assert answer.moved
    assert schedules.history() == [("02 02:00", "schedule", "fired")]


async def test_clocks_of_machines_do_not_matter(schedules: Schedules, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the database's clock counts: it is the only one that a decision reads."""
    await schedules.at("2026-01-01T12:00Z")
    await schedules.register(DAILY)
    await schedules.go("2026-01-01T12:00Z")

    class Wrong(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            raise AssertionError("the clock of the machine was read")

    monkeypatch.setattr("tasker.engine.fire_plan.datetime", Wrong)
    monkeypatch.setattr("tasker.engine.fire_times.datetime", Wrong)
    monkeypatch.setattr("tasker.services.schedule_firing.datetime", Wrong)
    await schedules.go("2026-01-02T02:00:01Z")

    assert len(schedules.contexts()) == 1


async def test_a_database_clock_that_steps_back_fires_nothing_twice(schedules: Schedules) -> None:
    await schedules.at("2026-01-01T12:00Z")
    await schedules.register(DAILY)
    await schedules.go("2026-01-01T12:00Z", "2026-01-02T02:00:01Z", "2026-01-02T01:00Z", "2026-01-02T02:00:01Z")

    assert schedules.history() == [("02 02:00", "schedule", "fired")]
    assert schedules.next_at() == "03 02:00"


async def test_a_task_that_cannot_be_submitted_is_refused_and_the_next_time_follows(schedules: Schedules) -> None:
    await schedules.at("2026-01-01T12:00Z")
    await schedules.register(DAILY)
    schedules.lab.one.execute("update tasker.schedules set version = '9.9.9'")
    await schedules.go("2026-01-01T12:00Z", "2026-01-02T02:00:01Z")

    assert schedules.history() == [("02 02:00", "schedule", "refused")]
    (detail,) = schedules.lab.one.rows("select detail->>'error' from tasker.schedule_fires")[0]
    assert detail == "no template lab/report version 9.9.9 is registered"
    assert schedules.next_at() == "03 02:00"


async def test_a_deployment_keeps_the_next_fire_and_an_older_version_changes_nothing(schedules: Schedules) -> None:
    await schedules.at("2026-01-01T12:00Z")
    await schedules.register(DAILY, "1.9.0")
    await schedules.go("2026-01-01T12:00Z")
    await schedules.at("2026-01-02T02:00:01Z")
    await schedules.register(DAILY, "1.10.0")
    await schedules.register('[{name: daily, cron: "0 5 * * *"}]', "1.2.0")
    await schedules.look()

    assert schedules.history() == [("02 02:00", "schedule", "fired")]
    assert schedules.lab.one.rows("select version from tasker.schedules") == [("1.10.0",)]


async def test_a_schedule_that_changed_begins_anew(schedules: Schedules) -> None:
    await schedules.at("2026-01-02T12:00Z")
    await schedules.register(DAILY)
    await schedules.go("2026-01-02T12:00Z")
    await schedules.register('[{name: daily, cron: "0 11 * * *"}]', "1.1.0")
    await schedules.look()

    assert schedules.history() == []
    assert schedules.next_at() == "03 11:00"


async def test_a_schedule_that_is_no_longer_declared_rests(schedules: Schedules) -> None:
    await schedules.at("2026-01-01T12:00Z")
    await schedules.register(DAILY)
    assert schedules.change("delete") == {"refused": "declared"}
    await schedules.go("2026-01-01T12:00Z")
    await schedules.register("[]", "2.0.0")
    await schedules.go("2026-01-02T02:00:01Z")
    assert schedules.history() == []
    assert schedules.next_at() is None

    await schedules.register(DAILY, "2.1.0")
    await schedules.go("2026-01-02T12:00Z", "2026-01-03T02:00:01Z")
    assert schedules.history() == [("03 02:00", "schedule", "fired")]
    await schedules.register("[]", "2.2.0")
    assert schedules.change("delete")["changed"]
    assert schedules.history() == []


async def test_jitter_delays_the_fire_and_not_its_time(schedules: Schedules) -> None:
    await schedules.at("2026-01-01T12:00Z")
    await schedules.register('[{name: daily, cron: "0 2 * * *", jitter: 10m}]')
    await schedules.look()
    due = schedules.lab.one.value("select due_at from tasker.timers where kind = 's'").astimezone(UTC)
    assert "02:00" <= due.strftime("%H:%M") <= "02:10"
    assert schedules.next_at() == "02 02:00"

    await schedules.go("2026-01-02T02:10:01Z")

    assert schedules.history() == [("02 02:00", "schedule", "fired")]


async def test_a_schedule_ends(schedules: Schedules) -> None:
    await schedules.at("2026-01-01T12:00Z")
    await schedules.register('[{name: daily, cron: "0 2 * * *", end: "2026-01-03T00:00:00Z", overlap: allow}]')
    await schedules.go("2026-01-01T12:00Z", "2026-01-02T02:00:01Z", "2026-01-09T02:00:01Z")

    assert schedules.history() == [("02 02:00", "schedule", "fired")]
    assert schedules.next_at() is None
    assert schedules.due() == []


async def test_the_history_is_bounded(schedules: Schedules) -> None:
    await schedules.at("2026-01-01T01:00Z")
    await schedules.register('[{name: daily, cron: "0 2 * * *", overlap: allow}]')
    await schedules.go("2026-01-01T01:00Z", *(f"2026-01-{day:02}T02:00:01Z" for day in range(1, 16)))
    await schedules.go("2026-06-01T02:00:01Z")

    assert len(schedules.history()) == 10


async def test_a_schedule_that_fails_does_not_keep_the_others_from_firing(
    schedules: Schedules, caplog: pytest.LogCaptureFixture
) -> None:
    await schedules.at("2026-01-01T12:00Z")
    names = ", ".join(f'{{name: s{number}, cron: "0 2 * * *"}}' for number in range(25))
    await schedules.register(f"[{names}]")
    schedules.lab.one.execute("""update tasker.schedules set spec = spec || '{"newer": 1}' where name < 's2'""")
    for _ in range(3):
        await schedules.look()
    await schedules.at("2026-01-02T02:00:01Z")
    for _ in range(2):
        await schedules.look()

    assert len(schedules.history()) == 13, "of 25, 12 are of a newer version"
    assert caplog.text.count("a newer version of Tasker has stored it") == 12
    assert len(schedules.due()) == 12


async def test_a_fire_is_skipped_while_a_task_of_its_unique_key_runs(schedules: Schedules) -> None:
    await schedules.at("2026-01-01T12:00Z")
    await schedules.register('[{name: daily, cron: "0 2 * * *", overlap: allow}]', more="unique: while_running\n")
    await schedules.go("2026-01-01T12:00Z", "2026-01-02T02:00Z", "2026-01-03T02:00Z")
    (running,) = schedules.lab.one.rows("select task_uuid from tasker.tasks")

    assert schedules.history() == [("02 02:00", "schedule", "fired"), ("03 02:00", "schedule", "skipped")]
    query = "select detail->>'running' from tasker.schedule_fires where outcome = 'skipped'"
    assert schedules.lab.one.value(query) == str(running[0])
    assert schedules.one.firing.outcomes == {"fired": 1, "skipped": 1}
    schedule = str(schedules.lab.one.value("select schedule_uuid from tasker.schedules"))
    assert await schedules.one.firing.trigger(schedule, {"actor": "ann"}) == str(running[0])

    schedules.finish()
    await schedules.go("2026-01-04T02:00Z")
    assert schedules.history()[-1] == ("04 02:00", "schedule", "fired")
