"""The time of a task's steps as bars."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tasker.server.web.presenters.timeline import WIDE, timeline
from tasker.views.task_lists import TransitionDetail

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
WAYS = ("pending", "enqueued", "in_progress", "waiting_for_retry")


def move(step: str | None, state: str, seconds: float, attempt: int = 1, sort_key: int = 1) -> TransitionDetail:
    at = START + timedelta(seconds=seconds)
    return TransitionDetail("step" if step else "task", step, None, state, at, sort_key, None, attempt, None, None)


RETRIED = [
    move(None, "pending", 0),
    move("a", "pending", 0, 0),
    move("a", "enqueued", 1, 0),
    move("a", "in_progress", 3, 1),
    move("a", "waiting_for_retry", 6, 1),
    move("a", "pending", 8, 1),
    move("a", "enqueued", 8, 1),
    move("a", "in_progress", 8, 2),
    move("a", "complete", 10, 2),
]


def test_each_attempt_is_split_into_waiting_queued_running_and_rest() -> None:
    found = timeline(RETRIED, START + timedelta(hours=1))
    assert found is not None
    (row,) = found.rows
    assert [(bar.phase, round(bar.x), round(bar.width)) for bar in row.bars] == [
        ("waiting", 0, 100),
        ("queued", 100, 200),
        ("running", 300, 300),
        ("back-off", 600, 200),
        ("running", 800, 200),
    ]
    assert [bar.words for bar in row.bars][2:] == [
        "running 3.0 s, attempt 1",
        "back-off 2.0 s, attempt 1",
        "running 2.0 s, attempt 2",
    ]
    assert row.totals == {"waiting": 1000, "queued": 2000, "running": 5000, "back-off": 2000}
    assert found.milliseconds == 10_000
    assert found.ticks[2] == (500, "5.0 s")


def test_what_has_not_ended_goes_on_until_now() -> None:
    found = timeline(RETRIED[:4], START + timedelta(seconds=30))
    assert found is not None
    assert found.milliseconds == 30_000
    assert found.rows[0].bars[-1].words == "running 27.0 s, attempt 1"


def test_nothing_has_no_timeline() -> None:
    assert timeline([], START) is None


@given(st.lists(st.tuples(st.sampled_from(WAYS), st.integers(0, 50)), min_size=1, max_size=20), st.integers(0, 100))
def test_bars_follow_each_other_and_fill_the_time(ways: list[tuple[str, int]], rest: int) -> None:
    seconds, moves = 0, []
    for number, (state, lasted) in enumerate(ways):
        moves.append(move("a", state, seconds, number))
        seconds += lasted
    found = timeline(moves, START + timedelta(seconds=seconds + rest))
    assert found is not None
    bars = found.rows[0].bars
    assert all(abs(left.x + left.width - right.x) < 1e-6 for left, right in pairwise(bars))
    total = found.milliseconds
    assert abs(sum(bar.milliseconds for bar in bars) - total) < 1
    assert not bars or abs(bars[-1].x + bars[-1].width - WIDE) < 1e-6
