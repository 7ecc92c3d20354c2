"""`common.circuit_breakers`, `worker.circuit_breakers`, `common.failure_storm`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from tasker.settings.table import Table, choice, number, table, whole
from tasker.template.names import (
    BREAKER_FAILURES,
    BREAKER_SETTLE_SECONDS,
    BREAKER_SUCCESSES,
    BREAKER_TIMEOUT_SECONDS,
    COMPLETION_TIMEOUT_SECONDS,
    READINESS_FAILURES,
    READINESS_SUCCESSES,
    SLOW_COMPLETION_MS,
)

_FAILURES = "Consecutive failures that open the breaker."
_SUCCESSES = "Consecutive successes in the half-open state that close the breaker."
_TIMEOUT = "Time that an open breaker refuses calls before it allows a trial call."


PRESETS: Mapping[str, Mapping[str, int]] = {
    "conservative": {"failure_threshold": 2, "success_threshold": 5, "timeout_seconds": 120},
    "balanced": {"failure_threshold": 5, "success_threshold": 3, "timeout_seconds": 60},
    "aggressive": {"failure_threshold": 10, "success_threshold": 2, "timeout_seconds": 30},
    "database": {"failure_threshold": 3, "success_threshold": 2, "timeout_seconds": 30},
}
"""Matching thresholds and timeouts."""
Preset = Literal["none", "conservative", "balanced", "aggressive", "database"]
_PRESET = "Preset of thresholds and times; values set beside it override it."


class BreakerSettings(Table):
    """Defaults of all circuit breakers."""

    preset: Preset = choice("none", _PRESET)
    failure_threshold: int = whole(BREAKER_FAILURES, 1, 100, _FAILURES, advice="2 in tests, 10 in production.")
    success_threshold: int = whole(BREAKER_SUCCESSES, 1, 100, _SUCCESSES, advice="1 in tests, 5 in production.")
    timeout_seconds: int = whole(BREAKER_TIMEOUT_SECONDS, 1, 300, _TIMEOUT, advice="5 in tests, 60 in production.")


class BreakerThresholds(Table):
    """Thresholds and timeout of one component; unset values come from `default_config`."""

    preset: Preset = choice("none", _PRESET)
    failure_threshold: int = whole(BREAKER_FAILURES, 1, 100, _FAILURES)
    success_threshold: int = whole(BREAKER_SUCCESSES, 1, 100, _SUCCESSES)
    timeout_seconds: int = whole(BREAKER_TIMEOUT_SECONDS, 1, 300, _TIMEOUT)


class WebThresholds(BreakerThresholds):
    """Circuit breaker `database` around requests of programs. When open, requests fail at once with a time to retry."""


class ReadinessThresholds(Table):
    """Circuit breaker around promoting due retries and sweeping. When open, the round is skipped."""

    preset: Preset = choice("none", _PRESET)
    failure_threshold: int = whole(READINESS_FAILURES, 1, 100, _FAILURES)
    success_threshold: int = whole(READINESS_SUCCESSES, 1, 100, _SUCCESSES)
    timeout_seconds: int = whole(BREAKER_TIMEOUT_SECONDS, 1, 300, _TIMEOUT)


class Components(Table):
    """Independent circuit breakers of the components."""

    cache: BreakerThresholds = table(BreakerThresholds)
    messaging: BreakerThresholds = table(BreakerThresholds)
    task_readiness: ReadinessThresholds = table(ReadinessThresholds)
    web: WebThresholds = table(WebThresholds)


class AllBreakers(Table):
    """Settings of all circuit breakers together."""

    metrics_collection_interval_seconds: int = whole(30, 1, 3600, "Period of the breakers' metrics.")
    min_state_transition_interval_seconds: float = number(
        BREAKER_SETTLE_SECONDS, 0, 60, "Minimum time between opening and closing of a breaker."
    )


class CircuitBreakers(Table):
    """Circuit breakers, which fail fast while a dependency does not answer."""

    default_config: BreakerSettings = table(BreakerSettings)
    component_configs: Components = table(Components)
    global_settings: AllBreakers = table(AllBreakers)


class CompletionSend(Table):
    """Circuit breaker around storing results. When open, nothing is claimed; results are stored after recovery."""

    failure_threshold: int = whole(BREAKER_FAILURES, 1, 100, _FAILURES)
    success_threshold: int = whole(BREAKER_SUCCESSES, 1, 100, _SUCCESSES)
    recovery_timeout_seconds: int = whole(COMPLETION_TIMEOUT_SECONDS, 1, 300, _TIMEOUT)
    slow_send_threshold_ms: int = whole(
        SLOW_COMPLETION_MS,
        10,
        10_000,
        "A write that took longer than this per result counts as a failure.",
        advice="More than the round trip to the database and back, twice.",
        single_process=10_000,
    )


class WorkerBreakers(Table):
    """Circuit breakers of a worker."""

    ffi_completion_send: CompletionSend = table(CompletionSend)


class FailureStorm(Table):
    """Failure bursts: if a step fails too often over all workers, its namespace, its template or it alone is paused."""

    failures: int = whole(
        0, 0, 1_000_000, "More failed attempts of one step within the window are a failure burst. 0: never."
    )
    window_seconds: int = whole(600, 1, 86_400, "The window.")
    pauses: Literal["namespace", "template", "step"] = choice(
        "namespace", "Target of the pause: the namespace (its queue), the template, or only the step."
    )
    resume_seconds: int = whole(0, 0, 604_800, "Duration of the pause. 0: until `tasker resume`.")
