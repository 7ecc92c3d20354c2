"""Fire times against daylight-saving changes of four zones, and against a brute-force reading of the rules."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tasker.engine.fire_times import FireTimes, jitter
from tasker.template.schedules import ScheduleSpec

ZONES = ("America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "America/Sao_Paulo", "UTC")
CHANGES = {
    "America/New_York": ("2026-03-08T07:00Z", "2026-11-01T06:00Z"),
    "Europe/Berlin": ("2026-03-29T01:00Z", "2026-10-25T01:00Z"),
    "Australia/Lord_Howe": ("2026-10-03T15:30Z", "2026-04-04T15:00Z"),
    "America/Sao_Paulo": ("2018-11-04T03:00Z", "2018-02-18T02:00Z"),
    "UTC": ("2026-03-29T01:00Z", "2026-10-25T01:00Z"),
}
"""Moments of a change to daylight-saving time and of one from it."""


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def times(spec: ScheduleSpec, after: str, count: int) -> list[str]:
    found = FireTimes(spec)
    return [found.local(moment).strftime("%d %H:%M%z") for moment in found.upcoming(utc(after), count)]


def daily(zone: str, cron: str, **more: str) -> ScheduleSpec:
    return ScheduleSpec(cron=cron, timezone=zone, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("zone", "cron", "after", "gap", "expected"),
    [
        ("America/New_York", "30 2 * * *", "2026-03-07T12:00Z", "next", ["08 03:00-0400", "09 02:30-0400"]),
        ("America/New_York", "30 2 * * *", "2026-03-07T12:00Z", "skip", ["09 02:30-0400", "10 02:30-0400"]),
        ("Europe/Berlin", "30 2 * * *", "2026-03-28T12:00Z", "next", ["29 03:00+0200", "30 02:30+0200"]),
        ("Europe/Berlin", "30 2 * * *", "2026-03-28T12:00Z", "skip", ["30 02:30+0200", "31 02:30+0200"]),
        ("Australia/Lord_Howe", "15 2 * * *", "2026-10-02T20:00Z", "next", ["04 02:30+1100", "05 02:15+1100"]),
        ("Australia/Lord_Howe", "15 2 * * *", "2026-10-02T20:00Z", "skip", ["05 02:15+1100", "06 02:15+1100"]),
        ("America/Sao_Paulo", "0 0 * * *", "2018-11-03T12:00Z", "next", ["04 01:00-0200", "05 00:00-0200"]),
        ("America/Sao_Paulo", "0 0 * * *", "2018-11-03T12:00Z", "skip", ["05 00:00-0200", "06 00:00-0200"]),
    ],
)
def test_missing_local_time_fires_after_the_change_or_not(
    zone: str, cron: str, after: str, gap: str, expected: list[str]
) -> None:
    assert times(daily(zone, cron, dst_gap=gap), after, 2) == expected


@pytest.mark.parametrize(
    ("zone", "cron", "after", "overlap", "expected"),
    [
        ("America/New_York", "30 1 * * *", "2026-10-31T12:00Z", "first", ["01 01:30-0400", "02 01:30-0500"]),
        ("America/New_York", "30 1 * * *", "2026-10-31T12:00Z", "both", ["01 01:30-0400", "01 01:30-0500"]),
        ("Europe/Berlin", "30 2 * * *", "2026-10-24T12:00Z", "first", ["25 02:30+0200", "26 02:30+0100"]),
        ("Europe/Berlin", "30 2 * * *", "2026-10-24T12:00Z", "both", ["25 02:30+0200", "25 02:30+0100"]),
        ("Australia/Lord_Howe", "45 1 * * *", "2026-04-04T00:00Z", "first", ["05 01:45+1100", "06 01:45+1030"]),
        ("Australia/Lord_Howe", "45 1 * * *", "2026-04-04T00:00Z", "both", ["05 01:45+1100", "05 01:45+1030"]),
        ("America/Sao_Paulo", "30 23 * * *", "2018-02-17T12:00Z", "first", ["17 23:30-0200", "18 23:30-0300"]),
        ("America/Sao_Paulo", "30 23 * * *", "2018-02-17T12:00Z", "both", ["17 23:30-0200", "17 23:30-0300"]),
    ],
)
def test_repeated_local_time_fires_once_or_twice(
    zone: str, cron: str, after: str, overlap: str, expected: list[str]
) -> None:
    assert times(daily(zone, cron, dst_overlap=overlap), after, 2) == expected


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("change", [0, 1])
@pytest.mark.parametrize(("cron", "minutes"), [("0 * * * *", 60), ("*/10 * * * *", 10), ("0 0-23 * * *", 60)])
def test_hourly_schedule_neither_stops_nor_doubles_at_a_change(zone: str, change: int, cron: str, minutes: int) -> None:
    found = FireTimes(daily(zone, cron))
    moment = utc(CHANGES[zone][change]) - timedelta(hours=4)
    fired = found.upcoming(moment, 60)
    longest = max(after - before for before, after in itertools.pairwise(fired))
    half = 30 if zone == "Australia/Lord_Howe" and minutes == 60 else 0  # its clocks change by half an hour
    assert longest <= timedelta(minutes=minutes + half)
    assert len(set(fired)) == len(fired)


def test_six_fields_have_seconds_in_front() -> None:
    found = FireTimes(daily("UTC", "*/20 * * * * *"))
    assert found.upcoming(utc("2026-01-01T00:00:05Z"), 3) == [
        utc("2026-01-01T00:00:20Z"),
        utc("2026-01-01T00:00:40Z"),
        utc("2026-01-01T00:01:00Z"),
    ]


def test_interval_counts_from_the_epoch_or_the_start() -> None:
    quarter = ScheduleSpec(every_seconds=900)
    assert FireTimes(quarter).after(utc("2026-01-01T00:07:30.5Z")) == utc("2026-01-01T00:15Z")
    assert FireTimes(quarter).after(utc("2026-01-01T00:15Z")) == utc("2026-01-01T00:30Z")
    begun = ScheduleSpec(every_seconds=900, start="2026-01-01T00:05:00+00:00")
    assert FireTimes(begun).after(utc("2025-01-01T00:00Z")) == utc("2026-01-01T00:05Z")
    assert FireTimes(begun).after(utc("2026-01-01T00:05Z")) == utc("2026-01-01T00:20Z")


def test_start_is_the_first_and_end_is_behind_the_last() -> None:
    found = FireTimes(daily("UTC", "0 0 * * *", start="2026-01-02T00:00:00Z", end="2026-01-04T00:00:00Z"))
    assert found.upcoming(utc("2020-01-01T00:00Z"), 9) == [utc("2026-01-02T00:00Z"), utc("2026-01-03T00:00Z")]


@pytest.mark.parametrize("zone", ZONES)
def test_skipped_dates_are_those_of_the_zone(zone: str) -> None:
    found = FireTimes(ScheduleSpec(cron="0 */6 * * *", timezone=zone, skip_dates=("2026-12-24", "2026-12-25")))
    fired = [found.local(moment) for moment in found.upcoming(utc("2026-12-23T00:00Z"), 12)]
    assert {moment.date() for moment in fired} & {date(2026, 12, 24), date(2026, 12, 25)} == set()
    assert [moment.hour for moment in fired if moment.date() == date(2026, 12, 26)] == [0, 6, 12, 18]


def test_each_second_of_a_skipped_date_costs_no_time() -> None:
    skipped = tuple((date(2026, 1, 1) + timedelta(days=day)).isoformat() for day in range(365))
    found = FireTimes(ScheduleSpec(cron="* * * * * *", skip_dates=skipped))
    assert found.after(utc("2026-01-01T00:00Z")) == utc("2027-01-01T00:00Z")


def test_impossible_and_distant_times_end() -> None:
    assert FireTimes(daily("UTC", "0 0 29 2 *")).after(utc("2026-01-01T00:00Z")) == utc("2028-02-29T00:00Z")
    assert FireTimes(daily("UTC", "0 0 29 2 *")).after(datetime(9999, 1, 1, tzinfo=UTC)) is None


def test_latest_times_are_the_last_ones_of_the_span() -> None:
    found = FireTimes(daily("Europe/Berlin", "0 2 * * *"))
    newest, more = found.latest(utc("2016-01-01T00:00Z"), utc("2026-01-04T12:00Z"), 2)
    assert newest == [utc("2026-01-03T01:00Z"), utc("2026-01-04T01:00Z")]
    assert more
    few, none_before = found.latest(utc("2026-01-02T12:00Z"), utc("2026-01-04T12:00Z"), 5)
    assert few == newest
    assert not none_before


def test_times_of_a_change_are_noted() -> None:
    found = FireTimes(daily("Europe/Berlin", "30 2 * * *"))
    assert found.note(utc("2026-03-29T01:00Z")) == "moved: the local time of the schedule does not exist on this day"
    assert found.note(utc("2026-10-25T00:30Z")) == "this local time occurs twice: first occurrence"
    assert found.note(utc("2026-10-26T01:30Z")) is None


def test_jitter_is_fixed_for_a_schedule_and_spread_between_schedules() -> None:
    spec = ScheduleSpec(cron="0 0 * * *", jitter_seconds=600)
    delays = [jitter(f"schedule {number}", spec) for number in range(200)]
    assert delays == [jitter(f"schedule {number}", spec) for number in range(200)]
    assert all(timedelta() <= delay <= timedelta(minutes=10) for delay in delays)
    assert min(delays) < timedelta(minutes=1)
    assert max(delays) > timedelta(minutes=9)
    assert jitter("a", ScheduleSpec(cron="0 0 * * *")) == timedelta()


CRONS = st.one_of(
    st.sampled_from(["0 * * * *", "*/7 * * * *", "0 */2 * * *", "15,45 1-3 * * *", "0 0 * * *", "30 23 * * *"]),
    st.builds("{} {} * * *".format, st.integers(0, 59), st.integers(0, 23)),
)


@given(
    zone=st.sampled_from(ZONES),
    change=st.sampled_from([0, 1]),
    cron=CRONS,
    gap=st.sampled_from(["next", "skip"]),
    overlap=st.sampled_from([None, "first", "both"]),
    offset=st.integers(-7200, 7200),
)
@example(zone="Europe/Berlin", change=1, cron="30 2 * * *", gap="next", overlap="both", offset=-1)
@example(zone="Australia/Lord_Howe", change=1, cron="45 1 * * *", gap="next", overlap="both", offset=60)
def test_fire_times_are_those_of_the_rules(
    zone: str, change: int, cron: str, gap: str, overlap: str | None, offset: int
) -> None:
    spec = ScheduleSpec(cron=cron, timezone=zone, dst_gap=gap, dst_overlap=overlap)
    begin = utc(CHANGES[zone][change]) + timedelta(seconds=offset)
    end = begin + timedelta(hours=30)
    assert list(FireTimes(spec).within(begin, end)) == sorted(
        moment for moment in by_the_rules(spec, begin - timedelta(days=2), end) if moment > begin
    )


def by_the_rules(spec: ScheduleSpec, begin: datetime, end: datetime) -> set[datetime]:
    """Each minute of the local calendar, placed in real time as the documentation says."""
    zone = ZoneInfo(spec.timezone)
    hours = str(spec.cron).split()[-4]
    twice = spec.dst_overlap == "both" or (spec.dst_overlap is None and hours.startswith("*"))
    found = set()
    for naive in minutes(begin.astimezone(zone).replace(tzinfo=None), end.astimezone(zone).replace(tzinfo=None)):
        if not matches(str(spec.cron), naive):
            continue
        placed = [naive.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1)]
        if placed[0].astimezone(zone).replace(tzinfo=None, fold=0) == naive:
            found |= set(placed if twice else placed[:1])
        elif spec.dst_gap == "next":
            found.add(first_moment_after_the_gap(placed, zone))
    return {moment for moment in found if moment <= end}


def minutes(begin: datetime, end: datetime) -> Iterator[datetime]:
    moment = begin.replace(second=0, microsecond=0)
    while moment <= end + timedelta(hours=3):
        yield moment
        moment += timedelta(minutes=1)


def matches(cron: str, naive: datetime) -> bool:
    minute, hour = cron.split()[:2]
    return naive.minute in values(minute, 60) and naive.hour in values(hour, 24)


def values(text: str, most: int) -> set[int]:
    found: set[int] = set()
    for part in text.split(","):
        span, _, step = part.partition("/")
        low, _, high = span.partition("-")
        first, last = (0, most - 1) if span == "*" else (int(low), int(high or low))
        found |= set(range(first, last + 1, int(step or 1)))
    return found


def first_moment_after_the_gap(placed: list[datetime], zone: ZoneInfo) -> datetime:
    moment = min(placed).replace(second=0)
    offset = moment.astimezone(zone).utcoffset()
    while moment.astimezone(zone).utcoffset() == offset:
        moment += timedelta(minutes=1)
    return moment
