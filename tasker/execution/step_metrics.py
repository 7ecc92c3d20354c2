"""Histograms and counts of the steps that a worker runs, by template and step.

Labels are names of templates and their steps, never of tasks, instances or inputs; further combinations than
`MOST_SERIES` of `tasker.metrics` are counted under `other`.
"""

from __future__ import annotations

from tasker.metrics import Counter, Histogram, Metric
from tasker.template.plan import Plan, StepPlan

BOUNDS = (0.005, 0.025, 0.1, 0.5, 1, 5, 30, 120, 600, 3600)
"""Upper ends of the buckets in seconds: few, since each template step has all of them."""
LABELS = ("namespace", "template", "step")
MEANINGS = {
    "tasker_step_queue_wait_seconds": "Time from the message of a ready step until its claim; "
    "in an ordered namespace, which has no queue, from the moment it was ready. Hand-offs are not counted.",
    "tasker_step_duration_seconds": "An attempt of a step on this worker, from the call of its handler to its end.",
    "tasker_step_snoozes_total": "Handlers that asked to be called again later (`again_in`).",
}


class StepMetrics:
    """Metrics of one worker. Used on its event loop only."""

    def __init__(self) -> None:
        wait, duration, snoozes = MEANINGS
        self.waits = Histogram(wait, MEANINGS[wait], BOUNDS, LABELS)
        self.durations = Histogram(duration, MEANINGS[duration], BOUNDS, (*LABELS, "result"))
        self.snoozes = Counter(snoozes, MEANINGS[snoozes], LABELS)

    def claimed(self, plan: Plan, step: StepPlan, waited_ms: float) -> None:
        """Record how long a step waited for its claim."""
        self.waits.observe(max(0.0, waited_ms / 1000), **_labels(plan, step))

    def ended(self, plan: Plan, step: StepPlan, duration_ms: float, *, failed: bool) -> None:
        """Record an attempt."""
        self.durations.observe(duration_ms / 1000, **_labels(plan, step), result="failure" if failed else "success")

    def snoozed(self, plan: Plan, step: StepPlan) -> None:
        """Record that a handler asked to be called again."""
        self.snoozes.add(1, **_labels(plan, step))

    def all(self) -> list[Metric]:
        """Return the metrics."""
        return [self.waits, self.durations, self.snoozes]


def _labels(plan: Plan, step: StepPlan) -> dict[str, str]:
    return {"namespace": plan.namespace, "template": plan.name, "step": step.name}
