"""Schedules fire each time once, whichever processes fire them, and their policies decide what else happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from tasker.clock import new_task_uuid
from tasker.db.connection import Connection
from tasker.engine.calls import Engine
from tasker.engine.fire_plan import plan_fires
from tasker.engine.plans import PlanStore
from tasker.messaging.backends import load_backend
from tasker.messaging.service import MessagingService
from tasker.services.schedule_firing import ScheduleFiring
from tasker.services.submission.submit import DraftFactory
from tasker.template import compile_text
from tests.support.engine_fixture import Lab

Rows = list[tuple[Any, ...]]


@dataclass
class Process:
    """One process that fires schedules, over a connection of its own."""

    connection: Connection
    firing: ScheduleFiring


class Schedules:
    """A template `lab/report` with one step, its schedules, and two processes at a time that the test sets."""

    def __init__(self, lab: Lab, processes: Sequence[Process]) -> None:
        self.lab, self.one, self.two = lab, processes[0], processes[1]
        self.moment = ""

    async def at(self, moment: str) -> None:
        """Set the clock of the database."""
        self.moment = moment
        setting = "select set_config('tasker.now', %s, false)"
        self.lab.one.rows(setting, moment)
        for process in (self.one, self.two):
            await process.connection.execute(setting, (moment,))

    async def register(self, schedules: str, version: str = "1.0.0", more: str = "") -> None:
        text = (
            f"name: report\nnamespace_name: {self.lab.namespace}\nversion: {version}\n{more}"
            f"schedules: {schedules}\nsteps: [{{name: only, handler: h.only}}]\n"
        )
        compiled = compile_text(text)
        assert compiled.ok, compiled.diagnostics
        await PlanStore(self.one.connection).register(compiled.plans[0], force=True)

    def due(self) -> list[str]:
        """The schedules that the engine names as due."""
        return list(self.lab.one.call("due", self.lab.one.args()).get("schedules", ()))

    async def look(self, process: Process | None = None) -> float | None:
        """Fire what is due, as a process does that looks."""
        return await (process or self.one).firing.fire_all(self.due())

    async def go(self, *moments: str) -> None:
        for moment in moments:
            await self.at(moment)
            await self.look()

    def history(self) -> Rows:
        query = """select to_char(fire_at at time zone 'UTC', 'DD HH24:MI'), kind, outcome from tasker.schedule_fires
          order by fire_at"""
        return [tuple(row) for row in self.lab.one.rows(query)]

    def contexts(self) -> list[Mapping[str, Any]]:
        query = "select d.context from tasker.tasks t join tasker.task_details d using (task_uuid) order by t.task_uuid"
        return [row[0] for row in self.lab.one.rows(query)]

    def next_at(self) -> str | None:
        value = self.lab.one.value("select next_at from tasker.schedules")
        return None if value is None else value.astimezone(UTC).strftime("%d %H:%M")

    def change(self, change: str, **more: Any) -> dict[str, Any]:
        target = {"namespace": self.lab.namespace, "template": "report", "name": "daily"}
        return self.lab.one.core("change_schedule", {"change": change, "actor": "ann", "reason": "", **target, **more})

    def finish(self) -> None:
        """Complete every open task."""
        self.lab.one.run_all()


@pytest.fixture
async def schedules(lab: Lab) -> AsyncIterator[Schedules]:
    connections = [Connection(lab.url), Connection(lab.url)]
    made = []
    for connection in connections:
        engine = Engine(connection, MessagingService(load_backend("pgmq", {})))
        made.append(Process(connection, ScheduleFiring(engine, PlanStore(connection), DraftFactory(new_task_uuid))))
    yield Schedules(lab, made)
    for connection in connections:
        await connection.close()


DAILY = '[{name: daily, cron: "0 2 * * *"}]'


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


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("once", [("04 02:00", "schedule", "missed"), ("05 02:00", "schedule", "fired")]),
        ("skip", [("05 02:00", "schedule", "missed")]),
        (
            "all",
            [
                ("02 02:00", "missed", "fired"),
                ("03 02:00", "missed", "fired"),
                ("04 02:00", "missed", "fired"),
                ("05 02:00", "missed", "fired"),
            ],
        ),
    ],
)
async def test_missed_fires_go_by_their_policy(schedules: Schedules, policy: str, expected: Rows) -> None:
    await schedules.at("2026-01-01T12:00Z")
    await schedules.register(f'[{{name: daily, cron: "0 2 * * *", missed_fire: {policy}}}]')
    await schedules.go("2026-01-01T12:00Z", "2026-01-05T12:00Z")
    for second in range(5, 60, 10):  # with `all`, one after the other
        schedules.finish()
        await schedules.go(f"2026-01-05T12:00:{second:02}Z")

    assert schedules.history() == expected
    assert schedules.next_at() == "06 02:00"


async def test_missed_fires_of_a_long_time_are_bounded(schedules: Schedules) -> None:
    await schedules.at("2026-01-01T12:00Z")
    await schedules.register('[{name: daily, cron: "* * * * *", missed_fire: all, overlap: allow}]')
    await schedules.go("2026-01-01T12:00Z", "2026-01-03T12:00:30Z")

    outcomes = [outcome for _, _, outcome in schedules.history()]
    assert outcomes == ["missed"] + ["fired"] * 100
    schedules.finish()


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("skip", ["fired", "skipped", "skipped"]),
        ("queue", ["fired", "queued", "skipped"]),
        ("allow", ["fired", "fired", "fired"]),
        ("cancel_running", ["fired", "fired", "fired"]),
    ],
)
async def test_overlap_goes_by_its_policy(schedules: Schedules, policy: str, expected: list[str]) -> None:
    await schedules.at("2026-01-01T12:00Z")
    await schedules.register(f'[{{name: daily, cron: "0 2 * * *", overlap: {policy}}}]')
    await schedules.go("2026-01-01T12:00Z", *(f"2026-01-0{day}T02:00:01Z" for day in (2, 3, 4)))

    assert [outcome for _, _, outcome in schedules.history()] == expected
    states = [row[0] for row in schedules.lab.one.rows("select state from tasker.tasks order by task_uuid")]
    cancelled = ["cancelled", "cancelled", "steps_in_process"]
    assert states == (cancelled if policy == "cancel_running" else ["steps_in_process"] * len(states))


async def test_a_queued_fire_begins_when_the_open_task_ends(schedules: Schedules) -> None:
    await schedules.at("2026-01-01T12:00Z")
    await schedules.register('[{name: daily, cron: "0 2 * * *", overlap: queue}]')
    await schedules.go("2026-01-01T12:00Z", "2026-01-02T02:00:01Z", "2026-01-03T02:00:01Z", "2026-01-03T03:00Z")
    assert len(schedules.contexts()) == 1

    schedules.finish()
    await schedules.go("2026-01-03T03:00:16Z")

    assert [outcome for _, _, outcome in schedules.history()] == ["fired", "fired"]
    assert len(schedules.contexts()) == 2
    assert schedules.next_at() == "04 02:00"


async def test_a_task_that_cannot_be_submitted_is_refused_and_the_next_time_follows(schedules: Schedules) -> None:
    await schedules.at("2026-01-01T12:00Z")
    await schedules.register(DAILY)
    schedules.lab.one.execute("update tasker.schedules set version = '9.9.9'")
    await schedules.go("2026-01-01T12:00Z", "2026-01-02T02:00:01Z")

    assert schedules.history() == [("02 02:00", "schedule", "refused")]
    (detail,) = schedules.lab.one.rows("select detail->>'error' from tasker.schedule_fires")[0]
    assert detail == "no template lab/report version 9.9.9 is registered"
    assert schedules.next_at() == "03 02:00"


async def test_a_paused_schedule_rests_and_misses_nothing(schedules: Schedules) -> None:
    await schedules.at("2026-01-01T12:00Z")
    await schedules.register(DAILY)
    await schedules.go("2026-01-01T12:00Z")
    assert schedules.change("pause")["changed"]
    assert not schedules.change("pause")["changed"]
    await schedules.go("2026-01-02T02:00:01Z", "2026-01-05T12:00Z")
    assert schedules.history() == []
    assert schedules.next_at() is None

    assert schedules.change("resume")["changed"]
    assert not schedules.change("resume")["changed"]
    await schedules.go("2026-01-05T12:00Z", "2026-01-06T02:00:01Z")

    assert schedules.history() == [("06 02:00", "schedule", "fired")]


async def test_a_trigger_submits_at_once_and_changes_no_time(schedules: Schedules) -> None:
    await schedules.at("2026-01-01T12:00Z")
    await schedules.register(DAILY)
    await schedules.go("2026-01-01T12:00Z")
    schedule = str(schedules.lab.one.value("select schedule_uuid from tasker.schedules"))

    tasks = {await schedules.one.firing.trigger(schedule, {"actor": "ann"}) for _ in range(3)}

    assert len(tasks) == 3 == len(schedules.contexts())
    assert schedules.next_at() == "02 02:00"
    await schedules.go("2026-01-02T02:00:01Z")
    assert schedules.history()[-1] == ("02 02:00", "schedule", "skipped"), "triggered tasks are open"


async def test_a_backfill_runs_one_after_the_other_and_leaves_out_what_ran(schedules: Schedules) -> None:
    await schedules.at("2026-01-04T12:00Z")
    await schedules.register(DAILY)
    await schedules.go("2026-01-04T12:00Z", "2026-01-05T02:00:01Z")
    schedules.finish()
    await schedules.at("2026-01-05T03:00Z")
    times = [f"2026-01-0{day}T02:00:00Z" for day in (3, 4, 5)]

    assert schedules.change("backfill", fires=times, detail={"actor": "ann"})["queued"] == 2
    await schedules.go("2026-01-05T03:00:01Z")
    assert [outcome for _, _, outcome in schedules.history()] == ["fired", "queued", "fired"]
    schedules.finish()
    await schedules.go("2026-01-05T03:01Z")

    assert schedules.history() == [
        ("03 02:00", "backfill", "fired"),
        ("04 02:00", "backfill", "fired"),
        ("05 02:00", "schedule", "fired"),
    ]
    assert schedules.change("backfill", fires=times, detail={})["queued"] == 0


async def test_a_fire_during_a_backfill_goes_before_the_rest_of_it(schedules: Schedules) -> None:
    await schedules.at("2026-01-05T01:00Z")
    await schedules.register(DAILY)
    await schedules.go("2026-01-05T01:00Z")
    schedules.change("backfill", fires=["2026-01-02T02:00:00Z", "2026-01-03T02:00:00Z"], detail={})
    await schedules.go("2026-01-05T01:00Z", "2026-01-05T02:00:01Z")
    assert [outcome for _, _, outcome in schedules.history()] == ["fired", "queued", "queued"]
    schedules.finish()
    await schedules.go("2026-01-05T02:01Z")

    assert [outcome for _, _, outcome in schedules.history()] == ["fired", "queued", "fired"]
    schedules.finish()
    await schedules.go("2026-01-05T02:02Z")
    assert [outcome for _, _, outcome in schedules.history()] == ["fired", "fired", "fired"]


async def test_a_backfill_goes_on_while_the_schedule_is_paused(schedules: Schedules) -> None:
    await schedules.at("2026-01-05T01:00Z")
    await schedules.register(DAILY)
    await schedules.go("2026-01-05T01:00Z")
    schedules.change("pause")
    schedules.change("backfill", fires=["2026-01-02T02:00:00Z"], detail={})
    await schedules.go("2026-01-05T02:00:01Z", "2026-01-06T02:00:01Z")

    assert schedules.history() == [("02 02:00", "backfill", "fired")]
    assert schedules.due() == []
    assert schedules.next_at() is None


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
