from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasker.batch_processing import (
    BatchableHandler,
    BatchAggregationScenario,
    best,
    merged_counts,
    total,
    weighted_average,
)
from tasker.engine.expansion.batches import parse_batches, worker_inputs
from tasker.errors import ValidationError
from tasker.types import (
    BatchAnalyzerOutcome,
    BatchWorkerContext,
    BatchWorkerOutcome,
    CursorConfig,
    FailureStrategy,
    RustCursorConfig,
    StepContext,
    StepHandlerResult,
    aggregate_batch_results,
    create_batches,
    no_batches,
)
from tests.unit.handlers import support

KEY = "batch_processing_outcome"


class Handler(BatchableHandler):
    def call(self, context: StepContext) -> StepHandlerResult:
        return self.success()


handler = Handler()


def content(result: StepHandlerResult) -> dict[str, Any]:
    assert result.is_success
    assert result.result is not None
    return result.result


def bounds(configs: list[CursorConfig]) -> list[tuple[int, int]]:
    return [(c.start_cursor, c.end_cursor) for c in configs]


def test_a_cap_on_batches_makes_them_larger_and_loses_nothing() -> None:
    assert bounds(handler.create_cursor_ranges(1000, 100, max_batches=5)) == [
        (0, 200), (200, 400), (400, 600), (600, 800), (800, 1000),
    ]  # fmt: skip


def test_workers_without_work_are_not_made() -> None:
    shares = handler.create_cursor_configs(6, 5)
    assert [(s.cursor_start, s.cursor_end) for s in shares] == [(0, 2), (2, 4), (4, 6)]
    assert [(s.batch_id, s.worker_index, s.total_workers) for s in shares] == [
        ("001", 0, 3),
        ("002", 1, 3),
        ("003", 2, 3),
    ]


@given(items=st.integers(0, 3000), size=st.integers(1, 400), step=st.integers(1, 7), cap=st.none() | st.integers(1, 50))
def test_every_item_is_in_exactly_one_batch(items: int, size: int, step: int, cap: int | None) -> None:
    configs = handler.create_cursor_ranges(items, size, step, cap)
    covered = [i for c in configs for i in range(c.start_cursor, c.end_cursor, c.step_size)]
    assert covered == list(range(0, items, step))
    assert all(c.start_cursor < c.end_cursor for c in configs)
    assert cap is None or len(configs) <= cap


@given(items=st.integers(1, 2000), workers=st.integers(1, 60))
def test_the_engine_reads_every_analysis_without_a_complaint(items: int, workers: int) -> None:
    result = handler.batch_analyzer_success(
        cursor_configs=handler.create_cursor_configs(items, workers), total_items=items, worker_template_name="part"
    )
    batches = parse_batches(result.result)
    assert batches.pattern == "part"
    assert batches.warnings == ()


@pytest.mark.parametrize(("items", "size"), [(-1, 10), (10, 0), (10, -3)])
def test_impossible_sizes_are_refused(items: int, size: int) -> None:
    with pytest.raises(ValidationError, match="must be"):
        handler.create_cursor_ranges(items, size)


def test_an_analysis_carries_the_outcome_and_data_for_the_workers() -> None:
    result = content(
        handler.batch_analyzer_success(
            handler.create_batch_outcome(20, 10, batch_metadata={"csv_path": "a.csv"}), worker_template_name="part"
        )
    )
    assert result[KEY] == {
        "type": "create_batches",
        "worker_template_name": "part",
        "worker_count": 2,
        "cursor_configs": [
            {"batch_id": "001", "start_cursor": 0, "end_cursor": 10, "batch_size": 10},
            {"batch_id": "002", "start_cursor": 10, "end_cursor": 20, "batch_size": 10},
        ],
        "total_items": 20,
    }
    assert (result["worker_count"], result["total_items"]) == (2, 20)
    assert result["batch_metadata"] == {"csv_path": "a.csv"}


def test_no_cursors_mean_no_batches() -> None:
    result = content(handler.batch_analyzer_success(cursor_configs=[], total_items=0, batch_metadata={"a": 1}))
    assert result[KEY] == {"type": "no_batches"}
    assert (result["reason"], result["batch_metadata"]) == ("empty_dataset", {"a": 1})
    assert content(handler.no_batches_success("dataset_too_small", total_rows=3))["total_rows"] == 3
    assert content(handler.no_batches_outcome("empty"))[KEY] == {"type": "no_batches"}


def test_additional_data_is_read_at_the_top_of_the_result() -> None:
    result = content(
        handler.create_batches_success("part", 1, [{"start_cursor": 0, "end_cursor": 5}], 5, {"csv_file_path": "a.csv"})
    )
    assert result["csv_file_path"] == "a.csv"
    with pytest.raises(ValidationError, match="worker_count is 2 but there are 1"):
        handler.create_batches_success("part", 2, [{"start_cursor": 0, "end_cursor": 5}], 5)


def test_cursors_may_be_any_json() -> None:
    config = CursorConfig(start_cursor="2026-01-01T00:00:00Z", end_cursor={"id": 7, "shard": "b"}, batch_size=60)
    assert config.to_dict(4) == {
        "batch_id": "005",
        "start_cursor": "2026-01-01T00:00:00Z",
        "end_cursor": {"id": 7, "shard": "b"},
        "batch_size": 60,
    }


def test_a_step_width_travels_to_the_worker() -> None:
    wire = CursorConfig(start_cursor=0, end_cursor=10, step_size=3).to_dict()
    assert (wire["batch_size"], wire["step_size"]) == (4, 3)
    outcome = content(handler.batch_analyzer_success(cursor_configs=[wire], worker_template_name="part"))
    cursor = parse_batches(outcome).cursors[0]
    batch = handler.get_batch_context(support.context(inputs=worker_inputs(cursor, None)))
    assert batch is not None
    assert list(range(batch.start_cursor, batch.end_cursor, batch.step_size)) == [0, 3, 6, 9]


def test_a_cursor_of_unknown_size_is_refused() -> None:
    with pytest.raises(ValidationError, match="not a range of integers and has no batch_size"):
        CursorConfig(start_cursor="a", end_cursor="m").to_dict()


def test_a_cursor_that_is_not_json_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"cursor_configs\[0\] is not JSON"):
        CursorConfig(start_cursor=object(), end_cursor=1, batch_size=1).to_dict()


@pytest.mark.parametrize("wrong", [{"start": 0}, 5, None])
def test_something_that_is_no_cursor_is_refused(wrong: Any) -> None:
    with pytest.raises(ValidationError, match=r"cursor_configs\[0\] must have start_cursor and end_cursor"):
        handler.batch_analyzer_success(cursor_configs=[wrong])


CURSOR = RustCursorConfig(batch_id="001", start_cursor=0, end_cursor=5, batch_size=5)


@pytest.mark.parametrize(
    ("template", "count", "cursors", "items", "said"),
    [
        ("", 1, [CURSOR], 5, "worker_template_name is empty"),
        ("part", 0, [], 5, "cursor_configs is empty"),
        ("part", 3, [CURSOR], 5, "worker_count is 3 but there are 1"),
        ("part", 2, [CURSOR, CURSOR], 5, "batch_id values repeat"),
        ("part", 1, [CURSOR], -1, "total_items is -1"),
    ],
)
def test_numbers_that_do_not_fit_together_are_refused(
    template: str, count: int, cursors: list[RustCursorConfig], items: int, said: str
) -> None:
    with pytest.raises(ValidationError, match=said):
        create_batches(template, count, cursors, items)


def test_an_analysis_is_read_in_both_forms() -> None:
    outcome = BatchAnalyzerOutcome.from_ranges([(0, 5), (5, 9)], total_items=9)
    for form in (outcome.to_dict("part"), outcome.model_dump()):
        assert bounds(BatchAnalyzerOutcome.parse(form).cursor_configs) == [(0, 5), (5, 9)]
    assert BatchAnalyzerOutcome.parse(no_batches().to_dict()).cursor_configs == []
    with pytest.raises(ValidationError, match="not a batch outcome"):
        BatchAnalyzerOutcome.parse({"type": "CreateBatches"})


def test_shares_may_be_made_by_a_function() -> None:
    made = handler.generate_cursor_configs(
        4, 2, lambda i, start, end, n: {"start_cursor": f"k{start}", "end_cursor": f"k{end}"}
    )
    assert made == [
        {"batch_id": "001", "batch_size": 2, "start_cursor": "k0", "end_cursor": "k2"},
        {"batch_id": "002", "batch_size": 2, "start_cursor": "k2", "end_cursor": "k4"},
    ]


@pytest.mark.parametrize(("item_ms", "size"), [(0.001, 10_000), (100, 4500), (60_000, 100)])
def test_the_optimal_size_aims_at_seven_and_a_half_minutes(item_ms: float, size: int) -> None:
    assert handler.calculate_optimal_batch_size(10**6, item_ms) == size


def test_a_worker_sees_its_batch() -> None:
    context = support.context(
        inputs=support.worker_inputs(10, 20),
        results={"analyze": {KEY: {"type": "create_batches", "worker_count": 5}}},
        checkpoint={"cursor": 15, "items_processed": 5, "accumulated_results": {"sum": 1}},
    )
    batch = handler.get_batch_context(context)
    assert batch is not None
    assert (batch.batch_id, batch.start_cursor, batch.end_position(), batch.batch_size) == ("001", 10, 20, 10)
    assert (batch.batch_index, batch.total_batches, batch.checkpoint_interval) == (0, 5, 5)
    assert (batch.checkpoint_cursor, batch.checkpoint_items_processed, batch.has_checkpoint()) == (15, 5, True)
    assert batch.accumulated_results == {"sum": 1}
    inputs = handler.get_batch_worker_inputs(context)
    assert inputs is not None
    assert inputs.batch_metadata.failure_strategy is FailureStrategy.FAIL_FAST


def test_a_step_without_batch_inputs_is_no_batch_worker() -> None:
    assert handler.get_batch_context(support.context()) is None
    assert handler.get_batch_worker_inputs(support.context()) is None
    assert handler.handle_no_op_worker(support.context()) is None
    assert handler.handle_no_op_worker(None) is None


def test_unreadable_batch_inputs_are_an_error() -> None:
    with pytest.raises(ValidationError, match="inputs of this batch worker cannot be read"):
        handler.get_batch_context(support.context(inputs={"cursor": {"batch_id": "001"}}))


@pytest.mark.parametrize("strategy", ["isolate", "isolate_failed"])
def test_both_spellings_of_isolate_are_known(strategy: str) -> None:
    assert FailureStrategy(strategy) is FailureStrategy.ISOLATE


def test_the_placeholder_answers_without_work() -> None:
    result = handler.handle_no_op_worker(support.context(inputs=support.worker_inputs(no_op=True)))
    assert result is not None
    assert {"no_op": True, "batch_id": "001", "items_processed": 0}.items() <= content(result).items()
    assert result.metadata == {"no_op": True}
    real = handler.create_batch_context(handler.create_cursor_config(0, 10), 0, 1)
    assert handler.handle_no_op_worker(real) is None


def test_a_worker_reports_both_names_of_the_count() -> None:
    result = content(handler.batch_worker_success(items_processed=10, items_failed=2, last_cursor=20))
    assert (result["items_processed"], result["processed_count"]) == (10, 10)
    assert (result["items_succeeded"], result["last_cursor"]) == (8, 20)
    assert content(handler.batch_worker_success(processed_count=3))["items_processed"] == 3
    assert content(handler.batch_worker_complete(3, {"sum": 7}))["sum"] == 7


def test_a_partial_failure_is_a_success_that_says_so() -> None:
    outcome = handler.create_worker_outcome(10, 8, 2, errors=[{"row": 3}])
    result = content(handler.batch_worker_partial_failure(outcome))
    assert (result["partial_failure"], result["message"]) == (True, "2 of 10 items failed")


def test_an_outcome_without_counts_means_success() -> None:
    assert handler.create_worker_outcome(5).items_succeeded == 5
    assert handler.create_worker_outcome(5, items_failed=5).items_succeeded == 0


ANALYZED = {KEY: {"type": "create_batches", "worker_count": 3}}


def test_batches_are_told_from_no_batches_by_the_outcome() -> None:
    placeholder = {"part_001": {"no_op": True}}
    empty = BatchAggregationScenario.detect(
        {"analyze": {KEY: {"type": "no_batches"}}} | placeholder, "analyze", "part_"
    )
    assert empty.no_batches()
    assert (empty.worker_count, empty.batch_results) == (0, {})
    assert BatchAggregationScenario.detect(placeholder, "analyze", "part").is_no_batches


@pytest.mark.parametrize("prefix", ["part", "part_"])
def test_only_numbered_workers_count(prefix: str) -> None:
    results = {"analyze": ANALYZED, "part_001": {"n": 1}, "part_003": {"n": 3}, "part_summary": {"n": 9}}
    found = handler.detect_aggregation_scenario(results, "analyze", prefix)
    assert found.batch_results == {"part_001": {"n": 1}, "part_003": {"n": 3}}
    assert (found.worker_count, found.expected_worker_count, found.missing) == (2, 3, ["part_002"])


def test_neither_batches_nor_none_is_an_error() -> None:
    with pytest.raises(ValidationError, match="no batches to aggregate") as caught:
        BatchAggregationScenario.detect({"analyze": ANALYZED}, "analyze", "part_")
    assert caught.value.hint == "results are present for: analyze"


def test_aggregation_uses_the_function_or_the_standard_totals() -> None:
    workers = {"part_001": {"items_processed": 4, "items_failed": 1}, "part_002": {"processed_count": 6}}
    scenario = BatchAggregationScenario.detect({"analyze": ANALYZED} | workers, "analyze", "part_")
    standard = content(handler.aggregate_batch_worker_results(scenario))
    assert (standard["total_processed"], standard["total_succeeded"], standard["success_rate"]) == (10, 9, 0.9)
    own = content(handler.aggregate_batch_worker_results(scenario, aggregation_fn=lambda found: {"names": list(found)}))
    assert own == {"names": ["part_001", "part_002"], "worker_count": 2}


def test_aggregation_of_nothing_gives_the_zero_metrics() -> None:
    scenario = BatchAggregationScenario(True, {}, {}, 0)
    assert content(handler.aggregate_batch_worker_results(scenario, {"total": 0})) == {"total": 0, "worker_count": 0}


def test_the_standard_summary_caps_errors_and_skips_missing_workers() -> None:
    errors = [{"row": n} for n in range(150)]
    summary = aggregate_batch_results([None, {"items_processed": 200, "items_failed": 150, "errors": errors}])
    assert (summary.batch_count, len(summary.errors), summary.error_count) == (1, 100, 150)
    assert aggregate_batch_results([]).success_rate == 0.0


def test_aggregation_patterns() -> None:
    results = [{"n": 2, "avg": 5.0, "by": {"a": 1}}, {"n": 1, "avg": 2.0, "by": {"a": 2, "b": 1}}, {}]
    assert total(results, "n") == 3
    assert best(results, "avg") == results[0]
    assert weighted_average(results, "avg", "n") == 4.0
    assert weighted_average([], "avg", "n") == 0.0
    assert merged_counts(results, "by") == {"a": 3, "b": 1}


def test_a_worker_outcome_keeps_any_cursor() -> None:
    assert BatchWorkerOutcome(last_cursor={"id": 3}).last_cursor == {"id": 3}
    assert BatchWorkerContext.model_fields["total_batches"].is_required()
