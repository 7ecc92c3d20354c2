"""`common.circuit_breakers`, `worker.circuit_breakers` (A-59 .. A-67)."""

from __future__ import annotations

from tasker.settings.table import Table, number, table, whole

_FAILURES = "Failures in a row that open the breaker."
_SUCCESSES = "Successes in a row, half-open, that close the breaker."


class Breaker(Table):
    """What counts for every breaker that says nothing else."""

    failure_threshold: int = whole(5, 1, 100, _FAILURES, advice="2 in tests, 10 in production.")
    success_threshold: int = whole(2, 1, 100, _SUCCESSES, advice="1 in tests, 5 in production.")
    timeout_seconds: int = whole(
        30,
        1,
        300,
        "How long an open breaker refuses before it lets a trial through.",
        advice="5 in tests, 60 in production.",
    )


class Thresholds(Table):
    """A component's own thresholds."""

    failure_threshold: int = whole(5, 1, 100, _FAILURES)
    success_threshold: int = whole(2, 1, 100, _SUCCESSES)


class ReadinessThresholds(Table):
    """The queries that look for ready steps. Open: the round is skipped."""

    failure_threshold: int = whole(10, 1, 100, _FAILURES)
    success_threshold: int = whole(3, 1, 100, _SUCCESSES)


class Components(Table):
    """The breakers by component; each works on its own."""

    cache: Thresholds = table(Thresholds)
    messaging: Thresholds = table(Thresholds)
    task_readiness: ReadinessThresholds = table(ReadinessThresholds)
    web: Thresholds = table(Thresholds)


class AllBreakers(Table):
    """What concerns all breakers together."""

    metrics_collection_interval_seconds: int = whole(30, 1, 3600, "Period of the breakers' metrics.")
    min_state_transition_interval_seconds: float = number(5.0, 0, 60, "Least time between two changes of a breaker.")


class CircuitBreakers(Table):
    """Failing fast while something that is needed does not answer."""

    default_config: Breaker = table(Breaker)
    component_configs: Components = table(Components)
    global_settings: AllBreakers = table(AllBreakers)


class CompletionSend(Table):
    """The breaker around storing results. It counts slow writes: one above the threshold is a failure."""

    failure_threshold: int = whole(5, 1, 100, _FAILURES)
    success_threshold: int = whole(2, 1, 100, _SUCCESSES)
    recovery_timeout_seconds: int = whole(5, 1, 300, "How long an open breaker refuses before it lets a trial through.")
    slow_send_threshold_ms: int = whole(100, 10, 10_000, "A write that takes longer counts as a failure.")


class WorkerBreakers(Table):
    """The worker's own breakers."""

    ffi_completion_send: CompletionSend = table(CompletionSend)
