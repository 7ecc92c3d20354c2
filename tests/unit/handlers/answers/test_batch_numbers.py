"""Numbers and cursors that cannot cut work are refused with what was found, and the step is not tried again."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tasker.batch_processing import BatchableHandler
from tasker.errors import ValidationError
from tasker.handlers.decisions import BatchConfig
from tasker.handlers.decorators import batch_analyzer
from tasker.types import CursorConfig, StepContext, StepHandlerResult
from tests.unit.handlers.support import context

NAN = float("nan")


class Handler(BatchableHandler):
    def call(self, context: StepContext) -> StepHandlerResult:
        return self.success()


handler = Handler()


class Counted:
    """A number as numpy has them: no `int`, and whole."""

    def __index__(self) -> int:
        return 25


def analysed(total_items: Any, batch_size: Any) -> StepHandlerResult:
    @batch_analyzer("cut", worker_template="part")
    def function() -> BatchConfig:
        return BatchConfig(total_items=total_items, batch_size=batch_size)

    made: Any = function
    result = made._handler_class().call(context())
    assert isinstance(result, StepHandlerResult)
    return result


@pytest.mark.parametrize(
    ("total_items", "batch_size", "said"),
    [
        (10.0, 3, "total_items must be a whole number of 0 or more, found float (10.0)"),
        ("10", 3, "total_items must be a whole number of 0 or more, found str ('10')"),
        (NAN, 3, "total_items must be a whole number of 0 or more, found float (nan)"),
        (None, 3, "total_items must be a whole number of 0 or more, found None"),
        (-1, 3, "total_items must be 0 or more, found -1"),
        (10, "3", "batch_size must be a whole number of 1 or more, found str ('3')"),
        (10, NAN, "batch_size must be a whole number of 1 or more, found float (nan)"),
        (10, math.inf, "batch_size must be a whole number of 1 or more, found float (inf)"),
        (10, 0.5, "batch_size must be a whole number of 1 or more, found float (0.5)"),
        (10, 0, "batch_size must be 1 or more, found 0"),
    ],
)
def test_an_analyzer_function_with_numbers_that_are_none_fails_for_good_and_names_them(
    total_items: Any, batch_size: Any, said: str
) -> None:
    failed = analysed(total_items, batch_size)

    assert (failed.error_type, failed.retryable, failed.error_message) == ("validation_error", False, said)


def test_whole_numbers_of_another_type_cut_work_as_those_of_python_do() -> None:
    assert analysed(Counted(), 10) == analysed(25, 10)
    assert analysed(25, Counted()) == analysed(25, 25)


@pytest.mark.parametrize(
    ("cut", "said"),
    [
        (lambda: handler.create_cursor_ranges(10, 2, step_size=1.5), "step_size must be a whole number of 1 or more"),  # type: ignore[arg-type]
        (lambda: handler.create_cursor_configs(10.5, 2), "total_items must be a whole number"),  # type: ignore[arg-type]
        (lambda: handler.create_cursor_configs(10, "2"), "worker_count must be a whole number"),  # type: ignore[arg-type]
        (lambda: handler.calculate_optimal_batch_size(10, NAN), "item_processing_time_ms must be above 0, found"),
        (lambda: handler.calculate_optimal_batch_size(10, "x"), "item_processing_time_ms must be above 0, found"),  # type: ignore[arg-type]
    ],
)
def test_a_handler_of_batches_refuses_them_as_well(cut: Any, said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        cut()


@pytest.mark.parametrize(("item_ms", "size"), [(1e-320, 10_000), (math.inf, 100), (10**400, 100)])
def test_the_optimal_size_stays_within_its_bounds_for_any_time(item_ms: float, size: int) -> None:
    assert handler.calculate_optimal_batch_size(10**6, item_ms) == size


@pytest.mark.parametrize(
    ("cursor", "said"),
    [
        ({"batch_size": "many"}, r"cursor_configs\[1\] batch_size: .* integer.*, found str \('many'\)"),
        ({"batch_id": 7}, r"cursor_configs\[1\] batch_id: .* string, found int \(7\)"),
        ({"metadata": "x"}, r"cursor_configs\[1\] metadata: .* dictionary, found str \('x'\)"),
        ({"step_size": 0}, r"cursor_configs\[1\] has the step_size 0, expected 1 or more"),
        ({"step_size": -1}, r"cursor_configs\[1\] has the step_size -1, expected 1 or more"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_a_cursor_with_a_field_of_a_wrong_type_is_refused_with_its_place(cursor: dict[str, Any], said: str) -> None:
    right = {"start_cursor": 0, "end_cursor": 5}
    with pytest.raises(ValidationError, match=said):
        handler.batch_analyzer_success(cursor_configs=[right, {"start_cursor": 5, "end_cursor": 9, **cursor}])


def test_a_range_that_ends_before_it_starts_is_refused() -> None:
    for reversed_range in ({"start_cursor": 5, "end_cursor": 1}, CursorConfig(start_cursor=5, end_cursor=1)):
        with pytest.raises(ValidationError, match=r"the cursor 5 \.\. 1 ends before it starts") as caught:
            handler.batch_analyzer_success(cursor_configs=[reversed_range])
        assert "batch_size=<items in this batch>" in str(caught.value.hint)


def test_a_reversed_range_that_says_how_many_items_it_has_and_an_empty_one_are_cursors() -> None:
    cursors = [
        {"start_cursor": 9, "end_cursor": 5, "batch_size": 4},
        {"start_cursor": 5, "end_cursor": 5},
    ]
    result = handler.batch_analyzer_success(cursor_configs=cursors).result
    assert result is not None
    assert result["total_items"] == 4
