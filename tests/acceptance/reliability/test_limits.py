"""Eight workers under limits, some of them killed: never more at the same time than the limit says, and all ends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import tasker
from tasker.services.submission.submit import Submission
from tests.support.fleets.fleet import Fleet
from tests.support.fleets.oracle import Oracle
from tests.support.waiting import until

CUSTOMERS, LIMIT, TASKS, WORKERS = 3, 3, 240, 8

TEMPLATE = f"""\
name: guarded
namespace_name: limits
version: 1.0.0
steps:
  - name: call
    handler: limits.call
    concurrency: {{key: input.customer, limit: {LIMIT}}}
  - name: note
    handler: limits.note
    dependencies: [call]
"""

HANDLERS = """\
import asyncio, time
from tasker.step_handler import inputs, step_handler

@step_handler("limits.call")
@inputs("customer")
async def call(customer):
    begun = time.time()
    await asyncio.sleep(0.02)
    return {"customer": customer, "begun": begun, "ended": time.time()}

@step_handler("limits.note")
async def note(context):
    return {}
"""

pytestmark = pytest.mark.slow

INTERVALS = """select (r.result->>'customer')::int, (r.result->>'begun')::float8, (r.result->>'ended')::float8
  from tasker.step_results r where r.name = 'call'"""


def most_at_once(intervals: list[tuple[float, float]]) -> int:
    """How many of the intervals have a moment in common at most."""
    events = sorted([(begun, 1) for begun, _ in intervals] + [(ended, -1) for _, ended in intervals])
    running = most = 0
    for _, change in events:
        running += change
        most = max(most, running)
    return most


@pytest.mark.servers
@pytest.mark.parametrize("server", ["embedded"], indirect=True)
def test_no_more_run_than_the_limit_whoever_is_killed(
    database_url: str, new_fleet: Callable[..., Fleet], oracle: Oracle, tmp_path: Path
) -> None:
    folder = tmp_path / "workflow"
    folder.mkdir()
    (folder / "workflow.yaml").write_text(TEMPLATE)
    (folder / "handlers.py").write_text(HANDLERS)
    fleet = new_fleet()
    for n in range(WORKERS):
        fleet.worker(f"worker{n}", str(folder), "--concurrency", "4", lease=3)
    with tasker.SyncApp(database_url, work=False) as app:
        plan = app.plans.find("limits", "guarded", None).plan
        app.submit_many(plan, [Submission({"customer": n % CUSTOMERS, "n": n}) for n in range(TASKS)])

    for begun, victim in ((TASKS // 8, 0), (TASKS // 4, 3), (TASKS // 2, 5)):
        until(lambda least=begun: oracle.finished() > least, "tasks go on")
        fleet.kill(f"worker{victim}")
    until(lambda: oracle.finished() == TASKS, "all tasks have ended")

    assert oracle.rows("select distinct state from tasker.tasks") == [("complete",)]
    by_customer: dict[int, list[tuple[float, float]]] = {}
    for customer, begun, ended in oracle.rows(INTERVALS):
        by_customer.setdefault(customer, []).append((begun, ended))
    assert {len(intervals) for intervals in by_customer.values()} == {TASKS // CUSTOMERS}
    most = {customer: most_at_once(intervals) for customer, intervals in by_customer.items()}
    assert max(most.values()) == LIMIT, most
    assert oracle.rows("select from tasker.limit_permits") == []
    assert oracle.rows("select from tasker.limit_waiters") == []
    assert not {"permit_not_granted", "permit_of_an_ended_step"} & {*+oracle.repairs()}
    oracle.check_promises()
