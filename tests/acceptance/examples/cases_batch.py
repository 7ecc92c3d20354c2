"""Batches below a decision, and batches with checkpoints."""

from __future__ import annotations

from typing import Any

from tests.acceptance.examples.workflow_case import Case, Failed

DIAMOND_TOP = ("diamond_start", "branch_evens", "branch_odds", "routing_decision")


def combined(name: str, numbers: list[int], route: str, batches: dict[str, tuple[int, int]], **change: Any) -> Case:
    """`batches`: for each worker how many numbers it works on and the sum of their squares."""
    below = (f"analyze_{route}", *batches) if batches else ()
    total = sum(squares for _, squares in batches.values())
    return Case(
        f"combined_{name}",
        "diamond_decision_batch",
        (*DIAMOND_TOP, *below, "aggregate_results"),
        {"numbers": numbers, **change},
        {"aggregate_results": {"route": route, "sum_of_squares": total, "batches": len(batches)}},
        holds={
            "routing_decision": {"route": route},
            **{step: {"items_processed": n, "sum_of_squares": squares} for step, (n, squares) in batches.items()},
        },
    )


EVENS = {"process_evens_001": (4, 120), "process_evens_002": (2, 244)}
SINGLE_ODDS = {"process_odds_001": (1, 1), "process_odds_002": (1, 9), "process_odds_003": (1, 25)}

COMBINED_CASES = [
    combined("evens", [1, 2, 3, 4, 5, 6, 7, 8, 10, 12], "evens", EVENS),
    combined("odds", [5, 3, 1], "odds", {"process_odds_001": (3, 35)}),
    combined("equal_groups_take_the_evens", [1, 2], "evens", {"process_evens_001": (1, 4)}),
    combined("no_numbers", [], "none", {}),
    combined("batch_size_from_the_input", [1, 3, 5], "odds", SINGLE_ODDS, batch_size=1),
]

IMPORT = ("plan_import", "import_rows_001", "summarize_import")
IMPORT_TWICE = ("plan_import", "import_rows_001", "import_rows_002", "summarize_import")


def imported(batch: str, total: int, *starts: int, rows: int = 100) -> dict[str, Any]:
    """The result of one worker; `starts` are the rows at which its runs began."""
    return {"items_processed": rows, "batch_id": batch, "total": total, "runs_started_at": list(starts)}


WHOLE = {
    "import_rows_001": imported("001", 4_950, 0, 25, 50, 75),
    "summarize_import": {"rows_imported": 100, "total": 4_950, "workers": 1},
}
HALVES = {
    "import_rows_001": imported("001", 1_225, 0, 25, rows=50),
    "import_rows_002": imported("002", 3_725, 50, 75, rows=50),
    "summarize_import": {"rows_imported": 100, "total": 4_950, "workers": 2},
}

CHECKPOINT_CASES = [
    Case("checkpoint", "checkpoint_yield", IMPORT, results=WHOLE, attempts=dict.fromkeys(IMPORT, 1)),
    Case(
        "checkpoint_resumes_after_a_failure",
        "checkpoint_yield",
        IMPORT,
        {"simulate": {"fails_once_at": 50}},
        WHOLE,
        attempts={"import_rows_001": 2},
    ),
    Case(
        "checkpoint_permanent_failure",
        "checkpoint_yield",
        IMPORT,
        {"simulate": {"poison_row": 60}},
        attempts={"import_rows_001": 1},
        waiting=("summarize_import",),
        failed=Failed("import_rows_001", "handler_error", "import_failed"),
    ),
    Case("checkpoint_two_workers", "checkpoint_yield", IMPORT_TWICE, {"workers": 2}, HALVES),
    Case(
        "checkpoint_no_rows",
        "checkpoint_yield",
        IMPORT,
        {"rows": 0},
        {"summarize_import": {"rows_imported": 0, "total": 0, "workers": 0}},
        holds={"import_rows_001": {"no_op": True}},
    ),
]

VIDEO_CASES = [
    Case(
        "videos",
        "video_batch",
        ("list_videos", "videos", "report"),
        results={"report": {"encoded": 11, "failed": 1, "megabytes": 1188.0}},
        holds={"videos": {"total": 12, "succeeded": 11, "failed": [11]}},
    ),
    Case(
        "small_videos",
        "video_batch",
        ("list_videos", "videos", "report"),
        {"height": 144},
        results={"report": {"encoded": 11, "failed": 1, "megabytes": 39.6}},
    ),
]
