"""What a worker counts of the steps that it runs."""

from __future__ import annotations

from tasker.execution.step_metrics import StepMetrics
from tasker.metrics import MOST_SERIES, Metric
from tasker.template.plan import HandlerRef, Plan, StepPlan
from tasker.template.step_types import DEFAULT

STEP = StepPlan("charge", DEFAULT, HandlerRef("h"), ordinal=0, level=0, depends_on=(), static=True)


def plan(name: str = "order") -> Plan:
    return Plan("shop", name, "1.0.0", (STEP,))


def counts(metric: Metric) -> dict[tuple[str, ...], float]:
    return {tuple(labels.values()): value for suffix, labels, value in metric.samples() if suffix in ("", "_count")}


def test_waits_durations_and_snoozes_are_counted_by_template_and_step() -> None:
    metrics = StepMetrics()
    metrics.claimed(plan(), STEP, 1500)
    metrics.ended(plan(), STEP, 20, failed=False)
    metrics.ended(plan(), STEP, 20, failed=True)
    metrics.snoozed(plan(), STEP)

    here = ("shop", "order", "charge")
    assert [counts(metric) for metric in metrics.all()] == [
        {here: 1},
        {(*here, "success"): 1, (*here, "failure"): 1},
        {here: 1},
    ]
    assert metrics.waits.counted(namespace="shop", template="order", step="charge")[1] == 1.5


def test_the_number_of_series_is_bounded() -> None:
    metrics = StepMetrics()
    for number in range(MOST_SERIES + 5):
        metrics.claimed(plan(f"t{number}"), STEP, 1)

    seen = counts(metrics.waits)
    assert len(seen) == MOST_SERIES + 1
    assert seen["other", "other", "other"] == 5
