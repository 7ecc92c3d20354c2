"""What a write's own changes say of its answer: what is complete for good, and when the first retry is due."""

from __future__ import annotations

from tasker.engine.changes import StepChange, completed, soonest_retry
from tasker.handlers.claims import Verdict


def change(step: str, kind: str, token: int = 1) -> StepChange:
    return {"s": step, "t": "task", "kind": kind, "k": token}


def test_a_step_is_complete_with_the_result_that_the_write_took() -> None:
    changes = [change("good", "ok", 4), change("bad", "fail"), change("late", "ok"), change("busy", "ok")]

    assert completed(changes, {"late": Verdict.STALE, "busy": Verdict.BUSY}) == {"good": 4}


def test_of_two_results_of_one_step_the_one_under_the_newer_token_counts_in_whatever_order() -> None:
    failed, done = change("s", "fail", 1), change("s", "ok", 2)
    assert completed([failed, done], {}) == completed([done, failed], {}) == {"s": 2}

    done, failed = change("s", "ok", 1), change("s", "fail", 2)
    assert completed([failed, done], {}) == completed([done, failed], {}) == {}


def test_the_first_of_the_retries_is_told_and_what_is_put_off_is_none() -> None:
    retries: list[StepChange] = [{**change(f"s{delay}", "retry"), "d": delay} for delay in (300, 20, None)]
    put_off: StepChange = {**change("s", "defer"), "d": 1}

    assert soonest_retry([*retries, put_off]) == 20
    assert soonest_retry([put_off, change("s", "ok")]) is None
