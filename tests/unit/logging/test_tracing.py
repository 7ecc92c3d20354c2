"""The trace of a task: what is accepted."""

from __future__ import annotations

import pytest

from tasker.logging.trace_context import TraceContext, accepted, checked

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
GIVEN = f"00-{TRACE}-{SPAN}-01"
WRONG = [
    "",
    "nonsense",
    GIVEN.upper(),
    f"ff-{TRACE}-{SPAN}-01",
    f"00-{'0' * 32}-{SPAN}-01",
    f"00-{TRACE}-{'0' * 16}-01",
    GIVEN + "\n",
    f"{GIVEN}-",
    f"{GIVEN}-what-the-future-will-be-like",
]


def test_a_place_in_a_trace_is_taken_apart() -> None:
    found = checked(GIVEN, "vendor=1")

    assert found is not None
    assert (found.trace_id, found.span_id) == (TRACE, SPAN)
    assert found.headers() == {"traceparent": GIVEN, "tracestate": "vendor=1"}
    assert checked(None, None) is None


@pytest.mark.parametrize("rest", ["", "-", "-what-the-future-will-be-like"])
def test_traceparent_of_a_later_version_may_go_on(rest: str) -> None:
    later = f"cc-{TRACE}-{SPAN}-01{rest}"

    assert checked(later, None) == accepted(later, None) == TraceContext(later)


@pytest.mark.parametrize("traceparent", WRONG)
def test_what_is_no_place_is_a_mistake_of_a_program_and_nothing_in_a_header(traceparent: str) -> None:
    with pytest.raises(ValueError, match=r"traceparent: expected 00-, the trace"):
        checked(traceparent, None)
    assert accepted(traceparent, "vendor=1") is None


def test_a_state_that_says_nothing_sensible_leaves_the_place() -> None:
    assert accepted(GIVEN, "\x00") == TraceContext(GIVEN)
    with pytest.raises(ValueError, match="pass both"):
        checked(None, "vendor=1")
    with pytest.raises(ValueError, match="512"):
        checked(GIVEN, "x" * 513)
