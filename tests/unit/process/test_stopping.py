"""Whether running steps can end within an orderly stop is said when the process starts."""

from __future__ import annotations

import re

import pytest

from tasker.cli.options import STOP_SECONDS
from tasker.process.stopping import grace_of, warn_short_grace
from tasker.settings.catalogue import by_path
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
    warn_short_grace([plan], limit_seconds=30)

    (record,) = caplog.records
    assert record.levelname == "WARNING"
    said = record.getMessage()
    assert "leaves running steps 23 seconds" in said
    assert f"the step {plan.namespace}/{plan.name}/slow may take 300" in said
    assert "start the worker with --shutdown-timeout 307 or more" in said
    assert "orchestration.shutdown_timeout_ms allows at most 300000" in said


def taken(option: str, value: str) -> bool:
    """Whether the command line, or for the setting the configuration, takes the value."""
    if option == "--shutdown-timeout":
        return isinstance(STOP_SECONDS.convert(value, None, None), float)
    return int(value) <= int(by_path()[option].high or 0)


@pytest.mark.parametrize("seconds", [5, 293, 294, 3593])
def test_what_it_says_to_do_is_allowed(seconds: float, caplog: pytest.LogCaptureFixture) -> None:
    warn_short_grace([plan_of(steps(f"- {{name: a, handler: h, timeout_seconds: {seconds}}}"))], limit_seconds=1)
    (advice,) = re.findall(
        r"(--shutdown-timeout|orchestration\.shutdown_timeout_ms to) (\d+) or more", caplog.messages[0]
    )
    assert taken(advice[0].removesuffix(" to"), advice[1])


def test_a_step_that_no_stop_waits_for_is_told_to_be_shorter(caplog: pytest.LogCaptureFixture) -> None:
    warn_short_grace([plan_of(steps("- {name: a, handler: h, timeout_seconds: 3594}"))], limit_seconds=3600)
    assert "no stop lasts 3601 seconds, the longest is --shutdown-timeout 3600: give the step" in caplog.messages[0]


@pytest.mark.parametrize("seconds", [0.5, 3, 7, 14, 30, 293])
def test_what_it_says_to_set_is_enough_and_no_more_than_that(seconds: float, caplog: pytest.LogCaptureFixture) -> None:
    plan = plan_of(steps(f"- {{name: a, handler: h, timeout_seconds: {seconds}}}"))
    warn_short_grace([plan], limit_seconds=seconds / 2)
    needed = int(caplog.messages[0].partition("shutdown_timeout_ms to ")[2].split()[0]) / 1000
    caplog.clear()

    warn_short_grace([plan], limit_seconds=needed)

    assert grace_of(needed) == seconds
    assert caplog.messages == []


def test_steps_without_a_timeout_of_their_own_have_nothing_to_say(caplog: pytest.LogCaptureFixture) -> None:
    warn_short_grace([plan_of(steps("- {name: a, handler: h}"))], limit_seconds=1)
    assert caplog.messages == []
