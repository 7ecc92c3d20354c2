"""Policies of schedules: missed fires, overlap, pauses, triggers and backfills."""

from __future__ import annotations

import pytest

from tests.integration.engine.protocol.schedules.conftest import DAILY, Rows, Schedules


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
