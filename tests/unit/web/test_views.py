"""What pages show, without a server."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tasker.engine.states.step import StepState
from tasker.engine.states.task import TaskState
from tasker.server.web.presenters.overview import HEIGHT, MARGIN, WIDTH, points
from tasker.server.web.presenters.task import GROUPS, label, shape
from tasker.server.web.presenters.text import ago, utc
from tasker.server.web.rendering import json_data

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_every_state_has_a_look_and_words() -> None:
    for state in (*TaskState, *StepState):
        assert state.value in GROUPS
        assert "_" not in label(state.value)


def test_states_that_look_alike_in_grey_differ_in_shape_or_word() -> None:
    for states in (StepState, TaskState):
        looks = {(shape(state.value), label(state.value)) for state in states}
        assert len({shape(state.value) for state in states}) >= 6
        assert len(looks) >= len(states) - 3  # several ways of running look alike


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "now"),
        (1, "1 s ago"),
        (65, "1 m 05 s ago"),
        (7260, "2 h 01 m ago"),
        (-30, "in 30 s"),
        (-3900, "in 1 h 05 m"),
    ],
)
def test_a_moment_is_told_as_people_say_it(seconds: int, text: str) -> None:
    assert ago(NOW - timedelta(seconds=seconds), NOW) == text
    assert ago((NOW - timedelta(seconds=seconds)).isoformat(), NOW) == text


def test_what_is_long_ago_has_a_date() -> None:
    assert ago(NOW - timedelta(days=3), NOW) == "2026-02-26 12:00"
    assert utc(NOW) == "2026-03-01 12:00:00 UTC"
    assert utc(None) == ""


def test_a_sparkline_goes_from_edge_to_edge_and_from_bottom_to_top() -> None:
    corners = [tuple(map(float, corner.split(","))) for corner in points([0, 5, 10]).split()]
    assert corners == [(0, HEIGHT - MARGIN), (WIDTH / 2, HEIGHT / 2), (WIDTH, MARGIN)]
    assert {corner.split(",")[1] for corner in points([0, 0]).split()} == {f"{HEIGHT - MARGIN:.1f}"}
    assert points([]) == ""


def test_data_for_a_script_cannot_end_it() -> None:
    text = json_data({"name": "</script><script>alert(1)</script>&"})
    assert "<" not in text
    assert "&" not in text
