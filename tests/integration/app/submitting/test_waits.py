"""Steps that wait without a worker, through a program: until when, what for, and what follows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

import tasker
from tasker.errors import UsageError
from tasker.template import compile_text
from tasker.template.plan import Plan

TRIP = """
name: trip
namespace: caller
version: 1
steps:
  - {name: book, handler: greet}
  - {name: soon, type: wait, dependencies: [book], for: 50ms}
  - {name: departure, type: wait, dependencies: [soon], until: input.departs_at}
  - {name: survey, handler: greet, dependencies: [departure]}
"""


@pytest.fixture
def trip() -> Plan:
    (plan,) = compile_text(TRIP).plans
    return plan


def test_waits_end_at_their_times_and_what_follows_runs(app: tasker.SyncApp, trip: Plan) -> None:
    departs_at = datetime.now(UTC) + timedelta(seconds=0.5)

    report = app.run(trip, {"name": "a", "departs_at": departs_at.isoformat()}, timeout=60)

    assert report.status == "complete"
    assert datetime.fromisoformat(report.steps["departure"].result["waited_until"]) >= departs_at
    assert (report.waiting_for, report.steps["soon"].attempts) == ([], 1)


def test_lists_and_views_say_until_when_and_for_what_a_task_waits(app: tasker.SyncApp, trip: Plan) -> None:
    departs_at = datetime.now(UTC).replace(microsecond=0) + timedelta(days=30)
    plan = compile_text(TRIP.replace("[book]", "[]").replace("[soon]", "[]").replace("departure]", "departure, soon]"))
    task = app.submit(plan.plans[0], {"name": "a", "departs_at": departs_at.isoformat()}).task_uuid
    app.run(trip, {"name": "b", "departs_at": "2020-01-01T00:00:00Z"}, timeout=60)

    (row,) = app.tasks.list(waiting_for="time")

    assert (row.task_uuid, row.waiting_for, row.waits_until) == (task, ["time"], departs_at)
    assert app.tasks.list(waiting_for="event") == []
    assert app.views.task(task).waiting_for == ["time"]
    with pytest.raises(UsageError, match="unknown kind of wait 'nothing'"):
        app.tasks.list(waiting_for="nothing")
    reason = next(reason for reason in app.tasks.explain(task).reasons if reason.reason == "waits_time")
    assert reason.sentence(UTC) == f"waits until {departs_at:%Y-%m-%d %H:%M:%S}"
    assert f"tasker task step complete {task} departure --result '{{}}'" in reason.remedy()
