"""Values and outcomes as people read them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import click
import pytest

import tasker
from tasker.cli.render.outcome import failure_text, outcome_text
from tasker.cli.render.values import pretty_json, state_text, table
from tasker.engine.states.step import StepState
from tasker.services.wording import counted, duration, one_line
from tasker.views.tasks import StepReport
from tests.support.reports import report_of

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
FAILURE = {
    "message": "the line is dead", "error_type": "network_error", "error_code": "E7", "retryable": True, "attempt": 1,
    "worker": "01a1fad7-4acb-79cd-a60e-246c450eefa7", "at": NOON.isoformat(), "retry_in_ms": 200,
}  # fmt: skip


def step(name: str, state: str = "complete", **fields: Any) -> StepReport:
    given = {"attempts": 1, "max_attempts": 3, "depends_on": (), "result": None, "failures": (), "duration_ms": 5}
    return StepReport(step_uuid="", name=name, type="standard", handler=f"shop.{name}", state=state, **(given | fields))


def outcome(status: str, *steps: StepReport, **fields: Any) -> str:
    ended = NOON + timedelta(seconds=1.5)
    report = report_of(steps, status=status, created_at=NOON, **{"completed_at": ended, **fields})
    return click.unstyle(outcome_text(report))


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (None, ""), (0, "0 ms"), (999.4, "999 ms"), (1000, "1.0 s"), (59_900, "59.9 s"), (60_000, "1 m 00 s"),
        (3_599_000, "59 m 59 s"), (3_600_000, "1 h 00 m"), (8_000_000, "2 h 13 m"),
    ],
)  # fmt: skip
def test_durations_are_short(milliseconds: float | None, text: str) -> None:
    assert duration(milliseconds) == text


def test_every_state_of_a_step_has_a_symbol() -> None:
    assert all(click.unstyle(state_text(state))[2:] == state for state in StepState)
    assert len({state_text(state)[:8] for state in StepState}) > 6


def test_short_json_is_one_line_and_long_json_is_indented_and_cut() -> None:
    assert pretty_json({"a": 1}, indent=2) == '  {"a": 1}'
    assert json.loads(pretty_json({"a": ["x" * 100]}, indent=2)) == {"a": ["x" * 100]}
    assert pretty_json(list(range(200)), lines=3) == "[\n  0,\n  1,\n... 199 more lines"


def test_long_text_is_one_short_line() -> None:
    assert one_line("a\n  b\tc") == "a b c"
    assert one_line("when: no position 3\n  input.lines[3] > 1\n  ^^^^^") == "when: no position 3 (input.lines[3] > 1)"
    assert one_line("x" * 300) == "x" * 199 + "…"


def test_numbers_and_nouns_agree() -> None:
    assert (counted(0, "step"), counted(1, "step"), counted(2, "step")) == ("0 steps", "1 step", "2 steps")


def test_columns_line_up_whatever_their_colours() -> None:
    text = click.unstyle(table(("a", "state"), [("x", state_text("error")), ("longer", state_text("pending"))]))

    assert text.splitlines() == ["a       state", "x       ✖ error", "longer  · pending"]


def test_a_complete_task_shows_the_results_of_its_final_steps_alone() -> None:
    text = outcome("complete", step("pay", result={"id": 7}), step("ship", depends_on=("pay",), result={"ok": True}))

    assert text == '✔ complete in 1.5 s, 2 of 2 steps complete\nship:\n  {"ok": true}'


def test_a_task_that_went_on_names_the_steps_that_are_missing() -> None:
    steps = step("pay"), step("chart", "error", settled="continue"), step("page", "cancelled", settled="skipped")

    first, second, *_ = outcome("complete", *steps, outcome="partial").splitlines()

    assert first == "✔ complete in 1.5 s, 1 of 3 steps complete"
    assert second.startswith("partial, without chart, page; why: tasker task show ")


def test_a_failed_task_shows_error_handler_and_every_attempt() -> None:
    last = FAILURE | {"attempt": 2, "retry_in_ms": None, "final": "attempts used up"}
    failed = step("pay", "error", attempts=2, max_attempts=2, failures=(FAILURE, last))

    text = outcome("error", step("begin"), failed, step("ship", "pending", depends_on=("pay",)))

    assert "pay failed after 2 attempts of 2 (handler shop.pay)" in text
    assert "  network_error [E7]: the line is dead" in text
    assert "worker 450eefa7  network_error: the line is dead  (again after 200 ms)" in text
    assert "network_error: the line is dead  (attempts used up)" in text
    assert text.endswith("not run: ship")


@pytest.mark.parametrize(
    ("state", "attempts", "said"),
    [
        ("in_progress", 2, "pay: attempt 1 of 3 failed; attempt 2 runs (handler shop.pay)"),
        ("waiting_for_retry", 1, "pay: attempt 1 of 3 failed; attempt 2 waits (handler shop.pay)"),
        ("enqueued_for_orchestration", 2, "pay: attempt 1 of 3 failed (handler shop.pay)"),
        ("error", 1, "pay failed after 1 attempt of 3 (handler shop.pay)"),
    ],
)
def test_an_attempt_that_runs_or_waits_has_not_failed(state: str, attempts: int, said: str) -> None:
    text = click.unstyle(failure_text(step("pay", state, attempts=attempts, failures=(FAILURE,))))

    assert text.splitlines()[0] == said


def test_the_place_of_an_exception_is_the_last_line_of_the_users_code() -> None:
    frames = (
        f'  File "{tasker.__file__}", line 3, in call\n'
        '  File "/srv/shop.py", line 7, in pay\n    charge()\n'
        '  File "/srv/charge.py", line 9, in charge\n    post()\n'
        '  File "/venv/lib/python3.11/site-packages/httpx.py", line 5, in post\n'
    )
    raised = FAILURE | {"metadata": {"exception_type": "ValueError", "traceback": f"Traceback:\n{frames}ValueError: x"}}

    assert "  raised: ValueError at /srv/charge.py:9\n" in failure_text(step("pay", "error", failures=(raised,)))


def test_a_cancelled_task_says_why() -> None:
    assert "cancelled in 1.5 s, 0 of 1 step complete: no longer wanted" in outcome(
        "cancelled", step("pay", "cancelled"), cancel_reason="no longer wanted"
    )
