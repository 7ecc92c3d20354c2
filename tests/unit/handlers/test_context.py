from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasker.handlers.copies import deep_copy
from tasker.handlers.dependency_results import unwrap
from tasker.testing.contexts import step_context
from tasker.types import BatchWorkerContext, StepContext
from tests.unit.handlers.support import STEP, TASK, context

CURSOR = {
    "cursor": {"batch_id": "001", "start_cursor": 0, "end_cursor": 5, "batch_size": 5},
    "batch_metadata": {"checkpoint_interval": 1, "cursor_field": "id", "failure_strategy": "fail_fast"},
    "is_no_op": False,
}
CHECKPOINT = {"cursor": 500, "items_processed": 500, "accumulated_results": {"sum": 7}, "history": []}


def test_a_context_holds_what_the_worker_claimed() -> None:
    made = context({"amount": 5}, config={"currency": "EUR"}, inputs={"cursor": {}}, attempt=2)
    assert (made.task_uuid, made.step_uuid) == (UUID(TASK), UUID(STEP))
    assert made.get_input("amount") == made.get_task_field("amount") == 5
    assert made.get_config("currency") == "EUR"
    assert made.step_inputs == {"cursor": {}}
    assert (made.step_name, made.namespace, made.handler_name) == ("charge", "shop", "charge")


def test_attempts_are_counted_from_zero() -> None:
    assert [(context(attempt=n).retry_count, context(attempt=n).is_retry()) for n in (1, 2)] == [(0, False), (1, True)]
    assert [context(attempt=n).is_last_retry() for n in (1, 2, 3)] == [False, False, True]


def test_what_is_missing_is_none_and_never_an_error() -> None:
    empty = context()
    assert empty.get_input("x") is None
    assert empty.get_config("x") is None
    assert empty.get_dependency_result("x") is None
    assert empty.get_dependency_field("x", "a", "b") is None
    assert (empty.checkpoint, empty.checkpoint_cursor, empty.accumulated_results) == (None, None, None)
    assert (empty.checkpoint_items_processed, empty.has_checkpoint()) == (0, False)


def test_a_default_stands_in_for_what_is_missing_or_null() -> None:
    made = context({"a": None, "b": 0})
    assert [made.get_input_or(key, 9) for key in "abc"] == [9, 0, 9]


def test_dependency_results_are_unwrapped() -> None:
    made = context(results={"count": {"result": 3}, "user": {"name": {"first": "Ada"}}})
    assert made.get_dependency_result("count") == 3
    assert made.get_dependency_field("user", "name", "first") == "Ada"
    assert made.get_dependency_field("user", "name", "first", "deeper") is None
    assert made.get_dependency_result_keys() == ["count", "user"]


def test_what_a_handler_changes_it_changes_for_itself_alone_however_it_has_read_it() -> None:
    values, results = {"rows": [1]}, {"above": {"rows": [1]}, "unread": {"rows": [1]}}
    made = context(values, results=results)
    made.get_input("rows").append(2)
    made.get_dependency_result("above")["rows"].append(2)
    assert made.input_data == {"rows": [1, 2]}
    assert made.dependency_results == {"above": {"rows": [1, 2]}, "unread": {"rows": [1]}}
    made.dependency_results["more"] = 1
    made.input_data["more"] = 1
    assert (made.get_dependency_result("more"), made.get_input("more")) == (1, 1)
    assert (values, results["above"]) == ({"rows": [1]}, {"rows": [1]})


def test_a_context_of_which_nothing_was_read_yet_is_whole() -> None:
    values, results = {"n": 1}, {"above": {"n": 2}}
    assert context(values, results=results) == context(values, results=results)
    assert context(values, results=results) != context(values, results={"above": {"n": 3}})
    assert "input_data" not in repr(context(values, results=results))
    dumped = context(values, results=results).model_dump()
    assert (dumped["input_data"], dumped["dependency_results"]) == (values, results)
    copied = context(values, results=results).model_copy()
    assert (copied.input_data, copied.get_dependency_result("above")) == (values, {"n": 2})
    again = pickle.loads(pickle.dumps(context(values, results=results)))
    assert (again.get_input("n"), again.dependency_results) == (1, results)


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda made: made.model_copy(deep=True)], ids=["deepcopy", "model_copy"]
)
def test_a_deep_copy_has_values_of_its_own(copied: Callable[[StepContext], StepContext]) -> None:
    """In a worker a context knows things that cannot be copied: they stay the attempt's."""
    flag = threading.Event()  # holds a lock
    made = context({"n": [1]}, results={"above": {"n": [2]}}, cancel_flag=flag)
    made.get_input("n").append(9)
    other = copied(made)
    other.input_data["n"].clear()
    other.get_dependency_result("above")["n"].clear()
    assert (made.get_input("n"), made.dependency_results) == ([1, 9], {"above": {"n": [2]}})
    assert (other.step_name, other.cancelled) == (made.step_name, False)
    flag.set()
    assert other.cancelled


def test_a_context_whose_trace_is_told_by_a_plugin_can_be_pickled() -> None:
    made = context({"n": 1})
    made._claim = replace(made._claim, trace_of=lambda *place: None)
    again = pickle.loads(pickle.dumps(made))
    assert (again.step_name, again.get_input("n"), again.trace_headers) == (made.step_name, 1, {})


def test_a_batch_worker_that_reads_no_result_has_none_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of n workers each is given the result that cut n batches."""
    copied: list[object] = []
    monkeypatch.setattr("tasker.handlers.copies.deep_copy", lambda value: copied.append(value) or deep_copy(value))
    outcome = {"batch_processing_outcome": {"type": "create_batches", "worker_count": 7}}
    made = context(inputs=CURSOR, results={"cut": outcome})
    batch = BatchWorkerContext.from_step_context(made)
    assert batch is not None
    assert batch.total_batches == 7
    assert outcome not in copied
    made.get_dependency_result("cut")
    assert outcome in copied


def test_a_handlers_own_result_key_is_not_taken_for_an_envelope() -> None:
    own = {"result": "approved", "score": 7}
    assert unwrap(own) is own
    assert unwrap({"result": {"a": 1}, "success": True, "metadata": {}}) == {"a": 1}


@given(
    st.recursive(
        st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_whatever_was_wrapped_comes_out_again(value: object) -> None:
    assert unwrap({"result": value}) == value


def test_batch_results_come_in_the_order_of_their_numbers() -> None:
    names = [f"part_{n:03}" for n in (1000, 2, 10)]
    made = context(results={name: {"name": name} for name in names} | {"other": {}})
    assert [r["name"] for r in made.get_all_dependency_results("part_")] == ["part_002", "part_010", "part_1000"]


def test_a_checkpoint_is_readable_on_the_next_run() -> None:
    made = context(checkpoint=CHECKPOINT)
    assert made.has_checkpoint()
    assert (made.checkpoint_cursor, made.checkpoint_items_processed) == (500, 500)
    assert made.accumulated_results == {"sum": 7}


def test_a_handler_sees_that_it_should_stop() -> None:
    flag = threading.Event()
    made = context(cancel_flag=flag)
    assert made.cancelled is False
    flag.set()
    assert made.cancelled is True
    assert context().cancelled is False


def test_a_handler_cannot_change_what_the_worker_keeps() -> None:
    task_context = {"amount": 5}
    context(task_context).input_data["amount"] = 6
    assert task_context == {"amount": 5}


def test_a_context_travels_to_another_process_without_its_flag() -> None:
    made = context({"amount": 5}, checkpoint=CHECKPOINT, cancel_flag=threading.Event())
    again = pickle.loads(pickle.dumps(made))
    assert again.model_dump() == made.model_dump()
    assert again.checkpoint == CHECKPOINT
    assert again.cancelled is False


def test_a_context_for_tests_is_like_that_of_a_worker() -> None:
    made = step_context({"a": 1}, results={"up": {"n": 2}}, config={"size": 3}, attempt=2, name="charge")
    assert (made.get_input("a"), made.get_dependency_field("up", "n"), made.get_config("size")) == (1, 2, 3)
    assert (made.retry_count, made.is_last_retry(), made.step_name, made.checkpoint) == (1, False, "charge", None)

    batch = BatchWorkerContext.from_step_context(step_context(batch=(10, 30), checkpoint={"cursor": 12}))
    assert batch is not None
    assert (batch.start_cursor, batch.end_cursor, batch.batch_size, batch.checkpoint_cursor) == (10, 30, 20, 12)


def test_a_context_has_the_token_of_its_claim_and_none_outside_of_a_worker() -> None:
    made = context({"n": 1})
    made._claim = replace(made._claim, token=7)

    assert made.fencing_token == 7
    made._claim = None
    assert made.fencing_token == 0


def test_failures_above_are_read_by_name() -> None:
    made = step_context(failures={"pay": "declined"}, handles="pay")

    assert (made.failed("pay"), made.failed("ship")) == (made.failure, None)
    assert made.failure is not None
    assert (made.failure.step, made.failure.error_type) == ("pay", "declined")
    assert step_context().failure is None
