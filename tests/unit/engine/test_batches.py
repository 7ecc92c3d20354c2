"""Which batch outcomes are read, what the refused ones are told, and what a worker gets."""

from __future__ import annotations

from typing import Any

import pytest

from tasker.engine.expansion.batches import (
    NO_BATCHES,
    ParsedBatches,
    instance_name,
    instance_number,
    parse_batches,
    worker_inputs,
)
from tasker.engine.expansion.outcomes import OutcomeError, OutcomeProblem
from tasker.template.plan import BatchSettings

FIRST = {"batch_id": "001", "start_cursor": 0, "end_cursor": 10, "batch_size": 10}
SECOND = {"batch_id": "002", "start_cursor": 10, "end_cursor": 15, "batch_size": 5}


def outcome(*cursors: Any, **fields: Any) -> dict[str, Any]:
    standard = {
        "type": "create_batches",
        "worker_template_name": "process",
        "worker_count": len(cursors),
        "cursor_configs": list(cursors),
        "total_items": 15,
    }
    return {"batch_processing_outcome": standard | fields, "total_rows": 15}


def test_the_wire_form_is_read() -> None:
    batches = parse_batches(outcome(FIRST, SECOND))
    assert batches == ParsedBatches("process", (FIRST, SECOND), 15)
    assert batches.warnings == ()


def test_no_batches_is_read() -> None:
    assert parse_batches({"batch_processing_outcome": {"type": "no_batches"}}) == NO_BATCHES


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"),
        ({"region": "eu", "id": 1}, {"region": "eu", "id": 9}),
        (None, "m"),
        (0.5, 1.5),
    ],
)
def test_a_cursor_is_any_json(start: Any, end: Any) -> None:
    cursor = {"batch_id": "a", "start_cursor": start, "end_cursor": end, "batch_size": 15}
    assert parse_batches(outcome(cursor)).cursors == (cursor,)


def test_the_published_cursor_is_read_with_what_it_leaves_out() -> None:
    published = {"start_cursor": 0, "end_cursor": 30, "step_size": 2, "metadata": {"file": "a.csv"}}
    assert parse_batches(outcome(published)).cursors == (
        {
            "batch_id": "001",
            "start_cursor": 0,
            "end_cursor": 30,
            "batch_size": 15,
            "step_size": 2,
            "metadata": {"file": "a.csv"},
        },
    )


def test_a_plain_published_cursor_becomes_the_plain_wire_form() -> None:
    published = {"start_cursor": 0, "end_cursor": 10, "step_size": 1, "metadata": {}, "batch_id": None}
    assert parse_batches(outcome(published, total_items=10)).cursors == (FIRST,)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (outcome(FIRST, SECOND, worker_count=3), "has worker_count 3 and 2 cursor_configs; they must agree"),
        (outcome(FIRST, worker_count="1"), "needs 'worker_count', a whole number from 0; found text '1'"),
        (outcome(FIRST, worker_count=True), "needs 'worker_count', a whole number from 0; found a boolean True"),
        (outcome(FIRST, total_items=-1), "needs 'total_items', a whole number from 0; found int -1"),
        (outcome(FIRST, total_items=None), "needs 'total_items', a whole number from 0; found null"),
        (outcome(FIRST, worker_template_name=""), "needs 'worker_template_name', the name of a step; found text ''"),
        (outcome(), "is create_batches without cursor_configs"),
        (outcome(FIRST, cursor_configs={}), "needs 'cursor_configs', a list; found an object {}"),
        (outcome(FIRST, FIRST), "has the batch_id '001' twice: cursor_configs[0] and [1]"),
        (outcome("x"), ".cursor_configs[0] must be an object, found text 'x'"),
        (outcome({"start_cursor": 1}), ".cursor_configs[0] has no 'end_cursor'"),
        (outcome({**FIRST, "size": 3}), ".cursor_configs[0] has an unknown key 'size'"),
        (outcome({**FIRST, "batch_id": 1}), ".cursor_configs[0] needs a text as 'batch_id', found int 1"),
        (outcome({**FIRST, "batch_size": -1}), ".cursor_configs[0] needs 'batch_size', a whole number from 0"),
        (outcome({"start_cursor": "a", "end_cursor": "b"}), ".cursor_configs[0] needs 'batch_size'"),
        (outcome({**FIRST, "step_size": 0}), ".cursor_configs[0] needs a whole number from 1 as 'step_size'"),
        (outcome(FIRST, type="CreateBatches"), "has the type 'CreateBatches', an older spelling"),
        (outcome(FIRST, type="Continue"), "has an unknown type: text 'Continue'"),
        (outcome(FIRST, type=None), "has no 'type'"),
        (outcome(FIRST, workers=2), "has an unknown key 'workers'"),
        ({"batch_processing_outcome": "none"}, "must be an object, found text 'none'"),
    ],
)
def test_a_malformed_outcome_is_an_error_that_says_what_is_wrong(given: Any, message: str) -> None:
    with pytest.raises(OutcomeError) as error:
        parse_batches(given)
    assert error.value.problem == OutcomeProblem.MALFORMED
    assert message in error.value.message


def test_a_missing_outcome_is_an_error() -> None:
    with pytest.raises(OutcomeError, match="the result has no 'batch_processing_outcome'") as error:
        parse_batches({"worker_count": 1})
    assert error.value.problem == OutcomeProblem.MISSING


@pytest.mark.parametrize(
    ("cursors", "total", "warning"),
    [
        ([FIRST, SECOND], 20, "the batch sizes add up to 15, total_items is 20"),
        ([{**FIRST, "batch_size": 15}], 15, "batch '001' spans 10 items and says batch_size 15"),
        ([FIRST, {**SECOND, "start_cursor": 12, "end_cursor": 17}], 15, "the batches '001' and '002' leave a gap"),
        ([FIRST, {**SECOND, "start_cursor": 8, "end_cursor": 13}], 15, "the batches '001' and '002' overlap"),
    ],
)
def test_lost_or_doubled_items_are_warned_of_and_not_refused(cursors: list[Any], total: int, warning: str) -> None:
    assert parse_batches(outcome(*cursors, total_items=total)).warnings == (warning,)


def test_worker_inputs_have_exactly_the_documented_form() -> None:
    settings = BatchSettings(cursor_field="row_number", failure_strategy="isolate", checkpoint_interval=100)
    assert worker_inputs(FIRST, settings) == {
        "cursor": FIRST,
        "batch_metadata": {"checkpoint_interval": 100, "cursor_field": "row_number", "failure_strategy": "isolate"},
        "is_no_op": False,
    }
    assert worker_inputs(FIRST, None)["batch_metadata"] == {
        "checkpoint_interval": None,
        "cursor_field": "id",
        "failure_strategy": "fail_fast",
    }


def test_instances_are_numbered_from_one_and_ordered_by_number() -> None:
    names = [instance_name("process", index) for index in (0, 998, 999, 1000)]
    assert names == ["process_001", "process_999", "process_1000", "process_1001"]
    assert sorted(sorted(names), key=lambda name: instance_number(name, "process")) == names


def test_the_size_of_a_range_that_its_step_does_not_divide_counts_the_last_item() -> None:
    cursor = {"batch_id": "001", "start_cursor": 0, "end_cursor": 5, "step_size": 2}
    (read,) = parse_batches(outcome(cursor, total_items=3)).cursors

    assert read["batch_size"] == 3


def test_ranges_may_come_in_any_order() -> None:
    assert parse_batches(outcome(SECOND, FIRST)).warnings == ()
