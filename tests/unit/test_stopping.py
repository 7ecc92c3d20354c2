"""Whether running steps can end within an orderly stop is said when the process starts."""

from __future__ import annotations

import pytest

from tasker.process.supervision.stopping import grace_of, tell_short_grace
from tests.unit.template.support import plan_of, steps

STEPS = """
- {name: quick, handler: h, timeout_seconds: 5}
- {name: usual, handler: h}
- {name: slow, handler: h, timeout_seconds: 300}
"""


def test_the_slowest_step_that_a_stop_cuts_off_is_named_with_both_times_and_what_to_set(
    caplog: pytest.LogCaptureFixture,
) -> None:
    plan = plan_of(steps(STEPS))
    tell_short_grace([plan], limit_seconds=30)

    (record,) = caplog.records
    assert record.levelname == "WARNING"
    said = record.getMessage()
    assert "leaves running steps 23 seconds" in said
    assert f"the step {plan.namespace}/{plan.name}/slow may take 300" in said
    assert "orchestration.shutdown_timeout_ms to 307000 or more" in said


@pytest.mark.parametrize("seconds", [0.5, 3, 7, 14, 30, 300])
def test_what_it_says_to_set_is_enough_and_no_more_than_that(seconds: float, caplog: pytest.LogCaptureFixture) -> None:
    plan = plan_of(steps(f"- {{name: a, handler: h, timeout_seconds: {seconds}}}"))
    tell_short_grace([plan], limit_seconds=seconds / 2)
    needed = int(caplog.messages[0].partition("shutdown_timeout_ms to ")[2].split()[0]) / 1000
    caplog.clear()

    tell_short_grace([plan], limit_seconds=needed)

    assert grace_of(needed) == seconds
    assert caplog.messages == []


def test_steps_without_a_timeout_of_their_own_have_nothing_to_say(caplog: pytest.LogCaptureFixture) -> None:
    tell_short_grace([plan_of(steps("- {name: a, handler: h}"))], limit_seconds=1)
    assert caplog.messages == []
