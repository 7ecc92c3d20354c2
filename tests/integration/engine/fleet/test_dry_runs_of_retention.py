"""A dry run of prune counts what a run deletes, in slices of a bounded cost."""

from __future__ import annotations

from typing import Any

import pytest

from tasker.settings.retention import RetentionRule
from tests.integration.engine.fleet.test_retention import ended, left, prune
from tests.support.engine_fixture import Lab
from tests.support.fleets.work import Work, work_of


def test_a_dry_run_counts_slice_by_slice_what_a_run_deletes(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasker.services.database.COUNTED_SLICE", 4)
    for days in (31, 33, 33, 40):
        ended(lab, days, 3)
    ended(lab, 29, 3)
    (entry,) = ended(lab, 35, failed=True)
    rule = RetentionRule(completed_days=30, failed_days=30)
    planned, done = (
        [(each.failed, each.tasks, each.steps) for each in prune(lab, rule, dry_run=dry_run)]
        for dry_run in (True, False)
    )

    assert planned == done == [(False, 12, 12), (True, 1, 1)]
    assert entry not in left(lab)


def test_a_slice_that_is_counted_costs_the_same_however_many_tasks_are_to_go(lab: Lab) -> None:
    def count_slice(number: int) -> Work:
        tasks = [ended(lab, 31 + number + n / 100) for n in range(20)]
        lab.one.execute("vacuum tasker.tasks")
        named = str(lab.task(tasks[0][0]).named_task_uuid)
        args = {"named_task_uuid": named, "failed": False, "before": "2100-01-01", "slice": 10}
        return work_of(lab.one, lambda: counted.append(lab.one.core("count_prunable", args)))

    counted: list[dict[str, Any]] = []
    ended(lab, 5, 60)
    few = count_slice(0)
    ended(lab, 6, 240)
    many = count_slice(1)

    assert [each["tasks"] for each in counted] == [10, 10]
    assert many.pages <= few.pages + 5, (few.pages_of, many.pages_of)
