"""What plugins hear of an attempt is what was claimed, and what it came to."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta

from tasker.engine.exchange import Result
from tasker.execution.attempt.attempt import Attempt, ClaimReleased
from tasker.execution.attempt.listeners import AttemptListener
from tasker.handlers.claims import Failure, Success
from tasker.json_values import JsonText
from tasker.logging.trace_context import TraceContext
from tasker.plugins.hook_arguments import AttemptEnded, AttemptStarted
from tests.unit.execution.bench import Bench

NOW = datetime(2026, 11, 22, 9, 13, 30, tzinfo=UTC)
LATER = NOW + timedelta(seconds=1)
TRACE = TraceContext("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "vendor=1")


def attempt(bench: Bench) -> Attempt:
    made = bench.attempt(callable="shop.charge")
    claim = replace(made.claim, name="charge", attempt=2, max_attempts=5, worker="worker-1", trace=TRACE)
    return replace(made, claim=claim)


def test_a_start_is_told_with_all_that_was_claimed(bench: Bench) -> None:
    heard: list[AttemptStarted] = []
    of = attempt(bench)
    assert AttemptListener(heard.append, None, lambda: NOW).started(of.claim, of.plan) == heard[0]
    assert asdict(heard[0]) == {
        "task_uuid": "01900000-0000-7000-8000-000000000002",
        "step_uuid": "01900000-0000-7000-8000-000000000001",
        "namespace": "shop",
        "template": "orders",
        "step": "charge",
        "handler": "shop.charge",
        "attempt": 2,
        "max_attempts": 5,
        "token": 7,
        "worker": "worker-1",
        "correlation_id": "01900000-0000-7000-8000-000000000003",
        "started_at": NOW,
        "traceparent": TRACE.traceparent,
        "tracestate": "vendor=1",
    }


def test_an_end_is_told_with_what_the_attempt_came_to(bench: Bench) -> None:
    heard: list[AttemptEnded] = []
    of, times = attempt(bench), iter([NOW, LATER, LATER, LATER])
    teller = AttemptListener(None, heard.append, lambda: next(times))
    started = teller.started(of.claim, of.plan)
    teller.ended(started, Result(of.claim, of.plan, 12, Success(JsonText("{}"))))
    teller.ended(started, Result(of.claim, of.plan, 9, Failure("no answer", "timeout", retryable=True)))
    teller.ended(started, ClaimReleased(of.claim))
    assert heard == [
        AttemptEnded(started, "succeeded", 12, ended_at=LATER),
        AttemptEnded(started, "failed", 9, "timeout", "no answer", True, LATER),
        AttemptEnded(started, "released", ended_at=LATER),
    ]
