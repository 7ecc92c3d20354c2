"""What the engine's functions answer, parsed once: absent, null and empty are the same, and merging loses nothing."""

from __future__ import annotations

from typing import Any

import pytest

from tasker.engine.answers import ClaimAnswer, DueAnswer, SubmitAnswer
from tasker.engine.exchange import AdvanceResult, ClaimRow, CompletingWorker
from tasker.handlers.claims import Verdict

ROW = {"step": "s", "task": "t", "name": "pay", "template": 7, "ordinal": 2, "token": 3, "attempt": 1}


@pytest.mark.parametrize("answer", [{}, {"claims": None, "finished": None, "sent": None, "verdicts": None}])
def test_an_answer_without_anything_is_empty(answer: dict[str, Any]) -> None:
    found = AdvanceResult.parse(answer)

    assert not any((found.claims, found.finished, found.sent, found.verdicts, found.refused))
    assert found.inputs is None


def test_a_claim_is_a_row_of_its_answer() -> None:
    (row,) = ClaimAnswer.parse({"claims": [{**ROW, "apart": None}], "popped": 1}).claims

    assert row == ClaimRow("s", "t", "pay", 7, 2, 3, 1)


def test_what_handlers_read_comes_with_a_claim() -> None:
    task = {"template": 7, "namespace": 1, "context": {"n": 1}, "correlation": "c", "priority": 5}
    answer = ClaimAnswer.parse({"claims": [ROW], "tasks": {"t": task}, "results": {"t": {"first": [0, {"x": 1}]}}})

    assert answer.inputs is not None
    assert (answer.inputs["t"].correlation_id, answer.inputs["t"].results["first"]) == ("c", [0, {"x": 1}])


def test_only_what_will_never_be_accepted_is_refused() -> None:
    verdicts = {verdict.value: verdict.value for verdict in Verdict}
    found = AdvanceResult.parse({"verdicts": verdicts})

    assert found.refused.keys() == {"stale", "cancelled", "not_storable"}
    assert {step for step in verdicts if found.comes_again(step)} == {"busy", "replan"}
    assert not found.comes_again("accepted without a word")


def test_several_writes_together_keep_every_claim_end_and_hint_and_the_soonest_retry() -> None:
    first = AdvanceResult.parse({"claims": [ROW], "sent": {"a": 1, "b": 2}, "verdicts": {"s": "busy"}})
    second = DueAnswer.parse({"finished": {"t": "complete"}, "sent": {"a": 4}, "verdicts": {"s": "stale"}})
    retrying = AdvanceResult(retry_in_ms=20), AdvanceResult(retry_in_ms=10)

    merged = AdvanceResult.merged([first, second, *retrying])

    assert [claim.step for claim in merged.claims] == ["s"]
    assert (merged.sent, merged.finished) == ({"a": 5, "b": 2}, {"t": "complete"})
    assert (merged.refused, merged.retry_in_ms) == ({"s": Verdict.STALE}, 10)


def test_nothing_written_is_nothing() -> None:
    assert AdvanceResult.merged([]) == AdvanceResult(claims=[])


def test_a_submission_of_duplicates_alone_creates_nothing() -> None:
    assert SubmitAnswer.parse({"created": []}).created == frozenset()


def test_a_caller_never_offers_less_than_nothing() -> None:
    assert CompletingWorker("w", 3).args()["slots"] == 3
    assert CompletingWorker("w", 3).args(-1)["slots"] == 0


def test_a_write_says_when_the_first_step_is_due_that_waits_since() -> None:
    """So that the process that made it wait promotes it on time."""
    again = {"s": "s", "t": "t", "kind": "retry", "k": 1, "d": 500}

    assert AdvanceResult.parse({"begins_in_ms": 300}).retry_in_ms == 300
    assert AdvanceResult.parse({"begins_in_ms": 300}, [again]).retry_in_ms == 300  # type: ignore[list-item]
    assert AdvanceResult.parse({"begins_in_ms": 900}, [again]).retry_in_ms == 500  # type: ignore[list-item]
    assert AdvanceResult.parse({}).retry_in_ms is None
