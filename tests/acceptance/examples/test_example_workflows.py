"""Every example workflow, run through the engine, its results compared with figures worked out by hand."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import AsyncIterator
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
import pytest_asyncio

import tasker
from tasker.errors import InputInvalid
from tasker.testing.contexts import fake_http
from tests.acceptance.examples.workflow_case import WORKFLOWS, Case, load_input
from tests.acceptance.examples.workflow_cases import CASES, FOLDERS, WITH_HANDLERS
from tests.support.servers import brokers

pytestmark = pytest.mark.asyncio(loop_scope="module")
CSV_STEPS = ["analyze_csv", *(f"process_csv_batch_{n:03}" for n in range(1, 6)), "aggregate_csv_results"]


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=brokers.ENGINE_BACKENDS)
async def app(module_database_url: str, request: pytest.FixtureRequest) -> AsyncIterator[tasker.App]:
    """One engine with the handlers of all examples; `test` shortens the delays between attempts."""
    settings = brokers.engine_settings(request.param)
    async with tasker.App(
        database_url=module_database_url,
        handlers=WITH_HANDLERS,
        environment="test",
        backend=request.param,
        backend_settings=settings,
        resources={"mail": fake_http(lambda request: httpx.Response(202))},
    ) as running:
        yield running
        await running.stop_working()
        await brokers.remove_queues(running._resources.messaging, settings)
    with psycopg.connect(module_database_url) as connection:
        assert connection.execute("select kind, repaired from tasker.repairs").fetchall() == []


async def run(app: tasker.App, folder: str, values: dict[str, Any]) -> Any:
    return await app.run(WORKFLOWS / folder, values)


def check(case: Case, outcome: Any) -> None:
    """The whole of what a case promises."""
    assert {name: step.state for name, step in outcome.steps.items()} == {s: case.state_of(s) for s in case.steps}
    assert outcome.status == case.status
    for step, result in case.results.items():
        assert outcome.results[step] == result, step
    for step, part in case.holds.items():
        assert {key: outcome.results[step].get(key) for key in part} == part, step
    assert {step: outcome.steps[step].attempts for step in case.attempts} == case.attempts
    assert not [step for step in case.waiting if outcome.steps[step].attempts]
    if case.failed:
        check_error(case, outcome.steps[case.failed.step])


def check_error(case: Case, step: Any) -> None:
    expected, error = case.failed, step.error
    assert expected is not None
    found = (error["type"], error["code"] or "", error["retryable"])
    assert found == (expected.error_type, expected.code, expected.retryable)
    kept = step.failures[-1]["metadata"]
    assert {key: kept.get(key) for key in expected.metadata} == expected.metadata


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_a_workflow_ends_as_expected(app: tasker.App, case: Case) -> None:
    check(case, await run(app, case.folder, case.input))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
async def test_a_workflow_completes_with_the_input_that_it_ships(app: tasker.App, folder: Path) -> None:
    outcome = await run(app, folder.name, load_input(folder.name))

    assert outcome.status == "complete"
    assert {step.state for step in outcome.steps.values()} == {"complete"}
    assert all(isinstance(result, dict) for result in outcome.results.values())


async def test_every_workflow_folder_has_cases_or_a_test_of_its_own() -> None:
    assert {case.folder for case in CASES} | {"csv_inventory", "order_saga"} == {folder.name for folder in FOLDERS}


async def test_an_order_says_when_it_was_validated(app: tasker.App) -> None:
    outcome = await run(app, "order_fulfillment", load_input("order_fulfillment"))

    assert datetime.fromisoformat(outcome.results["validate_order"]["validated_at"]).tzinfo is not None


@pytest.mark.parametrize(
    ("folder", "change", "place"),
    [
        ("order_fulfillment", {"order_id": "1042"}, "order_id"),
        ("order_fulfillment", {"items": []}, "items"),
        ("ecommerce_checkout", {"country": "germany"}, "country"),
        ("payment_processing", {"currency": "XYZ"}, "currency"),
        ("customer_etl", {"processing_date": "yesterday"}, "processing_date"),
        ("user_registration", {"email": "nobody"}, "email"),
        ("nested_approval", {"risk_score": 101}, "risk_score"),
        ("linear_math", {"valeu": 1}, "valeu"),
    ],
)
async def test_a_wrong_input_is_refused_and_its_place_named(
    app: tasker.App, folder: str, change: dict[str, Any], place: str
) -> None:
    with pytest.raises(InputInvalid, match=place):
        await run(app, folder, load_input(folder) | change)


# --- the CSV inventory: the expected figures are computed here, without batches -----------------------------------


def inventory(rows: list[dict[str, str]]) -> dict[str, Any]:
    """What the workflow must find out about `rows`, except for the number of workers."""
    dearest = sorted(rows, key=lambda row: (-float(row["price"]), int(row["id"])))[:1]
    return {
        "total_processed": len(rows),
        "total_inventory_value": float(sum((Decimal(r["price"]) * Decimal(r["stock"]) for r in rows), Decimal(0))),
        "category_counts": dict(Counter(row["category"] for row in rows)),
        "max_price": float(dearest[0]["price"]) if dearest else 0.0,
        "max_price_product": dearest[0]["title"] if dearest else None,
        "overall_average_rating": round(sum(float(r["rating"]) for r in rows) / len(rows), 4) if rows else 0.0,
    }


def data_rows() -> list[dict[str, str]]:
    with (WORKFLOWS / "csv_inventory" / "data.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write_rows(path: Path, count: int) -> Path:
    """A file with the first `count` rows of the example's data."""
    lines = (WORKFLOWS / "csv_inventory" / "data.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[: count + 1]), encoding="utf-8")
    return path


async def run_csv(app: tasker.App, path: Path | str, **values: int) -> Any:
    return await run(app, "csv_inventory", {"csv_file_path": str(path), **values})


async def test_the_data_is_a_thousand_rows_with_the_columns_of_a_product() -> None:
    rows = data_rows()

    assert len(rows) == 1_000
    assert ",".join(rows[0]) == "id,title,description,category,price,discountPercentage,rating,stock,brand,sku,weight"
    assert [row["id"] for row in rows] == [str(number) for number in range(1, 1_001)]


async def test_a_thousand_rows_are_five_batches_with_the_result_of_a_plain_computation(app: tasker.App) -> None:
    outcome = await run_csv(app, "data.csv")

    assert outcome.status == "complete"
    assert sorted(outcome.steps) == sorted(CSV_STEPS)
    assert outcome.results["aggregate_csv_results"] == inventory(data_rows()) | {"worker_count": 5}
    batches = [outcome.results[name] for name in CSV_STEPS[1:6]]
    assert [(b["start_row"], b["end_row"]) for b in batches] == [(n, n + 200) for n in range(0, 1_000, 200)]


async def test_each_batch_holds_the_figures_of_its_own_rows(app: tasker.App) -> None:
    outcome = await run_csv(app, "data.csv")

    for number, name in enumerate(CSV_STEPS[1:6]):
        part = inventory(data_rows()[number * 200 : (number + 1) * 200])
        batch = outcome.results[name]
        assert batch["batch_id"] == f"{number + 1:03}"
        assert batch["processed_count"] == 200
        assert batch["total_inventory_value"] == part["total_inventory_value"]
        assert batch["category_counts"] == part["category_counts"]


async def test_ten_rows_are_one_batch(app: tasker.App, tmp_path: Path) -> None:
    outcome = await run_csv(app, write_rows(tmp_path / "ten.csv", 10))

    assert sorted(outcome.steps) == ["aggregate_csv_results", "analyze_csv", "process_csv_batch_001"]
    assert outcome.results["aggregate_csv_results"] == inventory(data_rows()[:10]) | {"worker_count": 1}


@pytest.mark.parametrize("text", ["header", "nothing"])
async def test_an_empty_file_ends_in_zeros_after_a_worker_that_does_nothing(
    app: tasker.App, tmp_path: Path, text: str
) -> None:
    path = write_rows(tmp_path / "empty.csv", 0 if text == "header" else -1)

    outcome = await run_csv(app, path)

    assert outcome.status == "complete"
    assert outcome.results["process_csv_batch_001"]["no_op"] is True
    assert outcome.results["aggregate_csv_results"] == inventory([]) | {"worker_count": 0}
    assert len(outcome.steps) == 3


@pytest.mark.parametrize(
    ("values", "workers"),
    [
        ({"batch_size": 100}, 5),
        ({"batch_size": 100, "max_workers": 20}, 10),
        ({"batch_size": 300}, 4),
        ({"batch_size": 1_000}, 1),
        ({"batch_size": 7, "max_workers": 3}, 3),
    ],
)
async def test_the_input_may_cut_the_batches_otherwise_without_changing_the_result(
    app: tasker.App, values: dict[str, int], workers: int
) -> None:
    outcome = await run_csv(app, "data.csv", **values)

    assert outcome.results["aggregate_csv_results"] == inventory(data_rows()) | {"worker_count": workers}


async def test_a_missing_file_fails_for_good_and_creates_no_worker(app: tasker.App) -> None:
    outcome = await run_csv(app, "missing.csv")

    assert outcome.status == "error"
    assert list(outcome.steps) == ["analyze_csv"]
    assert outcome.steps["analyze_csv"].attempts == 1
    assert outcome.steps["analyze_csv"].error["code"] == "csv_not_found"


async def test_a_file_without_a_needed_column_is_refused_by_its_name(app: tasker.App, tmp_path: Path) -> None:
    path = tmp_path / "short.csv"
    path.write_text("title,category,price,stock\nLamp,lighting,1.00,2\n", encoding="utf-8")

    outcome = await run_csv(app, path)

    assert outcome.steps["analyze_csv"].error["code"] == "csv_columns"
    assert "rating" in outcome.steps["analyze_csv"].error["message"]
