"""Construction of step changes for the engine: from results, from findings of a sweep, and from released claims."""

from __future__ import annotations

import json
from collections.abc import Mapping
from time import monotonic
from typing import Any

from tasker.engine.changes import StepChange
from tasker.engine.exchange import Result
from tasker.engine.retry import Fail, decide_failure, fingerprint, with_unknown_outcome
from tasker.engine.sweep_answers import FoundStep, Orphan, ParkedRow
from tasker.engine.task_graph import VersionedGraph
from tasker.errors import NotStorable
from tasker.handlers.claims import Claim, Failure, RetryTimes, Suspension
from tasker.json_values import JsonText, encode
from tasker.template.effects import ONCE
from tasker.template.plan import StepPlan

DETAIL_LIMIT = 100_000
"""Characters stored of a failure that cannot be stored as it is."""


def change_of(result: Result, random: float) -> StepChange:
    """Return the change for a result: `ok`, `retry` with its delay, or `fail` (part D section 5).

    `random` in [0, 1) places a retry's delay inside its jitter.
    """
    claim = result.claim
    change = simple_change("ok", claim.step_uuid, claim.task_uuid, claim.token, claim.worker)
    change["ms"] = result.duration_ms
    if result.events is not None:
        change["ev"] = result.events.stored
    if isinstance(result.outcome, Failure):
        step = result.plan.steps[claim.ordinal]
        return _failed(change, step, claim.attempt, result.outcome, random, claim.times(monotonic()))
    change["r"] = result.outcome.encoded
    if result.outcome.memoized is not None:
        change["n"] = {"memoized": result.outcome.memoized}
    if result.outcome.metadata:
        change["m"] = result.outcome.metadata
    return change


def lost_change(orphan: Orphan, step: StepPlan, random: float) -> StepChange:
    """Return the change for a step whose worker is gone: a retry, or a failure if it may run only once (rule 11)."""
    worker = orphan.label.worker
    failure = Failure(
        message=_lost_message(orphan, step),
        error_type="worker_lost",
        retryable=step.on_worker_lost != "fail",
        metadata={"worker": worker, "overdue": orphan.overdue},
        handler=step.handler.callable,
    )
    if step.effect == ONCE:
        failure = with_unknown_outcome(failure, orphan.known)
    note = {"lost": True, "reason": "worker_lost", "worker": worker}
    change = simple_change("fail", orphan.step, orphan.task, orphan.token, worker)
    change["n"] = note
    return _failed(change, step, orphan.attempt, failure, random, orphan.times)


def simple_change(kind: str, step: str, task: str, token: int | None = None, worker: str | None = None) -> StepChange:
    """Return a change without an outcome (release, promote, unhold), with the claim token and worker if known."""
    change: StepChange = {"s": step, "t": task, "kind": kind}
    if token is not None:
        change["k"] = token
    if worker:
        change["w"] = worker
    return change


def failed_change(row: FoundStep | ParkedRow, error: Mapping[str, Any], worker: str | None = None) -> StepChange:
    """Return the change for a step that fails permanently without an attempt's outcome."""
    change = simple_change("fail", row.step, row.task, row.token, worker)
    change["e"] = {**error, "fingerprint": fingerprint(error)}
    return change


def released_change(
    claim: Claim,
    note: Mapping[str, str],
    delay_ms: int | None = None,
    snoozes: int | None = None,
    state: Mapping[str, Any] | None = None,
) -> StepChange:
    """Return the change for a claim released without using an attempt: to the queue, or deferred by `delay_ms`.

    `snoozes`: its handler asked for that, and may do so that often; `state` is for its next call.
    """
    kind = "release" if delay_ms is None else "defer" if snoozes is None else "snooze"
    change = simple_change(kind, claim.step_uuid, claim.task_uuid, claim.token, claim.worker)
    change["n"] = note
    if delay_ms is not None:
        change["d"] = delay_ms
    if snoozes is not None:
        change["sn"] = snoozes
    if state is not None:
        change["r"] = {"state": state}
    return change


def suspended_change(claim: Claim, wait: Suspension) -> StepChange:
    """Return the change for a step whose handler waits for an event."""
    change = simple_change("suspend", claim.step_uuid, claim.task_uuid, claim.token, claim.worker)
    change["r"] = {"event": None, "timed_out": False} | ({} if wait.state is None else {"state": wait.state})
    change["m"] = {"event": wait.event, "key": wait.key, "on_timeout": wait.on_timeout, "schema": wait.schema}
    change["d"] = wait.timeout_ms
    return change


def with_growth(change: StepChange, growth: VersionedGraph) -> StepChange:
    """Add the steps that the change creates, valid for that version of the task's graph (rule 8)."""
    change["gv"] = growth.version
    if growth.steps:
        change["x"] = growth.steps
    return change


def _failed(
    change: StepChange, step: StepPlan, attempt: int, failure: Failure, random: float, times: RetryTimes
) -> StepChange:
    """Add the consequence of a failure to the change, with the error and the reason."""
    decision = decide_failure(step.retry, attempt, failure, random, times)
    error = {
        "message": failure.message,
        "error_type": failure.error_type,
        "error_code": failure.error_code,
        "retryable": failure.retryable,
        "handler": failure.handler or step.handler.callable,
        "attempt": attempt,
        "max_attempts": max(1, step.retry.max_attempts),
        "metadata": dict(failure.metadata),
    }
    if isinstance(decision, Fail):
        error |= {"final": decision.message, "final_reason": decision.reason, "fingerprint": _fingerprint(error)}
        change["kind"] = "fail"
    else:
        error["retry_in_ms"] = change["d"] = decision.delay_ms
        change["kind"] = "retry"
    change["e"] = _storable(error)
    return change


def _fingerprint(error: Mapping[str, Any]) -> str:
    from tasker.errors.tracebacks import raised_in  # its package is not needed where nothing fails

    return fingerprint(error, raised_in(error["metadata"]))


def _storable(error: dict[str, Any]) -> JsonText:
    """Return the failure as JSON that can always be stored: if any part cannot, the whole becomes printable text."""
    try:
        return encode(error)
    except NotStorable:
        texts = {key: _printable(value) if isinstance(value, str) else value for key, value in error.items()}
        detail = _printable(json.dumps(error, default=str, ensure_ascii=False))[:DETAIL_LIMIT]
        return JsonText(json.dumps({**texts, "metadata": {}, "detail": detail}))


def _printable(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode().replace("\0", "\\x00")


def _lost_message(orphan: Orphan, step: StepPlan) -> str:
    why = "did not finish before its deadline" if orphan.overdue else "stopped renewing its lease"
    end = ""
    if step.on_worker_lost == "fail" and step.effect != ONCE:
        end = "; the step may run only once (on_worker_lost: fail)"
    return f"the worker that had started this step {why}{end}"
