"""A task with many steps, and with long names, as people read it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import click
import pytest

from tasker.cli.render.outcome import failure_text, outcome_text
from tasker.cli.render.task import report_text, steps_text
from tasker.cli.render.values import clock_time, middle_cut
from tasker.services.wording import countdown, folded_names
from tasker.views.tasks import StepReport, TaskReport
from tests.support.reports import report_of

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
FAILURE = {
    "message": "row 7 has no price", "error_type": "validation_error", "error_code": None, "retryable": False,
    "attempt": 1, "worker": "01a1fad7-4acb-79cd-a60e-246c450eefa7", "at": NOON.isoformat(), "retry_in_ms": None,
}  # fmt: skip


def step(name: str, state: str = "complete", **fields: Any) -> StepReport:
    given = {"attempts": 1, "max_attempts": 3, "depends_on": (), "result": None, "failures": (), "duration_ms": 5}
    given |= {"type": "standard", "handler": "h"}
    return StepReport(step_uuid="", name=name, state=state, **(given | fields))


def batch(number: int, failed: tuple[int, ...] = ()) -> list[StepReport]:
    made = []
    for n in range(1, number + 1):
        fields = {"failures": (FAILURE,), "state": "error"} if n in failed else {"result": {"n": n}}
        made.append(step(f"process_batch_{n:03}", type="batch_worker", **fields))
    return made


def report(*steps: StepReport, status: str = "error") -> TaskReport:
    return report_of(steps, status=status, created_at=NOON, completed_at=NOON + timedelta(seconds=2))


def shown(*steps: StepReport, width: int | None = None, every: bool = False) -> list[str]:
    text = steps_text(steps, every=every, width=width, now=NOON + timedelta(seconds=8))
    return click.unstyle(text).splitlines()[1:]


def test_five_hundred_batches_are_one_row_and_the_failed_ones() -> None:
    steps = batch(500, failed=(17, 243))
    collect = step("collect", "pending", attempts=0, duration_ms=None, depends_on=[s.name for s in steps])

    assert [" ".join(line.split()) for line in shown(step("plan"), *steps, collect)] == [
        "plan ✔ complete 1/3 5 ms",
        "process_batch_001..500 ✖ 498 complete, 2 error, up to 5 ms",
        "process_batch_017 ✖ error 1/3 5 ms",
        "process_batch_243 ✖ error 1/3 5 ms",
        "collect · pending process_batch_001..500",
    ]
    assert len(shown(*steps, every=True)) == 500


def test_of_thousands_of_steps_the_first_are_shown_and_the_others_counted() -> None:
    letters = "abcdefghijklmnopqrst"
    steps = [step("".join(name), depends_on=()) for name in product(letters, repeat=3)]

    rows = shown(*steps)
    assert (len(rows), " ".join(rows[-1].split())) == (501, "and 7,500 more --all shows each step")
    assert len(shown(*steps, every=True)) == 8000


def test_few_batches_and_steps_that_only_look_like_batches_are_shown_each() -> None:
    assert len(shown(*batch(4))) == 4
    assert len(shown(*(step(f"day_{n}") for n in range(1, 10)))) == 9


def test_when_many_have_failed_the_first_are_shown_and_the_others_counted() -> None:
    text = click.unstyle(report_text(report(*batch(500, failed=tuple(range(1, 101))))))

    assert "  and 90 more" in text
    assert text.count("row 7 has no price") == 2 * 5, "of five, each with its attempt"
    assert "and 95 steps more: process_batch_006..100\nHint: to see all of them: tasker task show uuid --all" in text
    assert "process_batch_101..500: 400 results" in text
    whole = click.unstyle(report_text(report(*batch(500, failed=tuple(range(1, 101)))), every=True))
    assert whole.count("row 7 has no price") == 2 * 100
    assert '{"n": 500}' in whole


def test_the_end_of_a_run_is_as_short() -> None:
    failed = outcome_text(report(*batch(500, failed=tuple(range(1, 101)))))
    complete = outcome_text(report(*batch(500), status="complete"))

    assert failed.count("row 7 has no price") == 2 * 5
    assert "process_batch_001..500: 500 results" in click.unstyle(complete)
    assert len(complete.splitlines()) == 2


@pytest.mark.parametrize("width", [64, 80, 120])
def test_rows_with_long_names_fit_the_screen_and_keep_both_ends_of_the_name(width: int) -> None:
    long = "reconcile_the_ledger_of_the_northern_region_with_the_bank_"
    rows = shown(
        *(step(f"{long}{end}", "waiting_for_retry", depends_on=[f"{long}x", f"{long}y"]) for end in "ab"),
        *batch(6),
        width=width,
    )

    assert all(len(row) <= width for row in rows)
    assert [row.split()[0][-1] for row in rows[:2]] == ["a", "b"]
    assert all("waiting_for_retry" in row for row in rows[:2])
    assert f"{long}a" in shown(step(f"{long}a"))[0], "where it is no terminal nothing is cut"


def test_a_step_that_waits_for_a_retry_counts_down_in_seconds() -> None:
    (row,) = shown(step("pay", "waiting_for_retry", failures=(FAILURE | {"retry_in_ms": 20_400},)))

    assert row.endswith("again in 13 s")
    assert [countdown(left) for left in (0.0001, 0.07, 0.9999, 1, 59.2, 185, 0, -3)] == [
        "in 1 ms",
        "in 70 ms",
        "in 1 s",
        "in 1 s",
        "in 1 m 00 s",
        "in 3 m 05 s",
        "now",
        "now",
    ]


def test_the_reason_of_an_attempt_gets_its_own_line_where_there_is_little_room_and_is_told_once() -> None:
    first = FAILURE | {"message": "the provider does not answer, for a while now"}
    last = first | {
        "attempt": 2,
        "message": "the provider answers that it was bought by somebody and will not answer again",
    }
    failed = step("pay", "error", attempts=2, failures=(first, last))
    narrow, wide = (click.unstyle(failure_text(failed, width)).splitlines() for width in (80, 160))

    assert narrow[1:] == [
        "  validation_error: the provider answers that it was bought by somebody and will",
        "  not answer again",
        "  attempts:",
        f"    1  {clock_time(NOON)}  worker 450eefa7",
        "       validation_error: the provider does not answer, for a while now",
        f"    2  {clock_time(NOON)}  worker 450eefa7",
    ]
    assert [line.endswith(each["message"]) for line, each in zip(wide[-2:], (first, last), strict=True)] == [True, True]


def test_what_waits_for_one_reason_is_one_line() -> None:
    waiting = [step(s.name, "enqueued", type="batch_worker", unserved=True, attempts=0) for s in batch(500)]
    lines = click.unstyle(report_text(report(*waiting, status="steps_in_process"))).splitlines()

    assert [line for line in lines if "no live worker has handler" in line] == [
        "process_batch_001..500 wait: no live worker has handler h (namespace shop)"
    ]


def test_names_are_folded_where_they_differ_in_their_number_alone() -> None:
    names = ["a", *(f"w_{n:02}" for n in range(1, 8)), "b_1", "b_2"]

    assert folded_names(names) == ["a", "w_01..07", "b_1", "b_2"]
    assert (middle_cut("abcdefghij", 5), middle_cut("abc", 5)) == ("ab…ij", "abc")
