"""What becomes of steps, as the engine takes it: one item of `tasker.advance_v1` each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tasker.contracts.execution import Claim, Failure
from tasker.contracts.json_text import JsonText
from tasker.contracts.plan import StepPlan
from tasker.lifecycle.retry import Fail, decide_failure
from tasker.lifecycle.storable import NotStorable, encode
from tasker.services.engine.exchange import Result
from tasker.services.engine.graph import Growth

DETAIL_LIMIT = 100_000
"""Characters that are kept of a failure that cannot be stored as it is."""


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of one step: the fields of its item but those that name it. `delay_ms` is that of a retry."""

    step_uuid: str
    task_uuid: str
    kind: str
    fields: Mapping[str, Any]
    delay_ms: int | None = None

    def item(self) -> dict[str, Any]:
        """The change as the engine takes it."""
        return {"s": self.step_uuid, "t": self.task_uuid, "kind": self.kind, **self.fields}


def change_of(result: Result, random: float) -> Change:
    """The change for a result: `ok`, or `retry` with its delay, or `fail` (part D section 5).

    `random` in [0, 1) places a retry's delay inside its jitter.
    """
    outcome, claim = result.outcome, result.outcome.claim
    fields = {"k": claim.token, **_bearer(claim.worker), "ms": outcome.duration_ms}
    if outcome.failure is not None:
        step = result.plan.by_name[claim.template_step]
        kind, delay_ms, rest = _failed(step, claim.attempt, outcome.failure, random)
        return Change(claim.step_uuid, claim.task_uuid, kind, fields | rest, delay_ms)
    fields["r"] = result.encoded
    if outcome.metadata:
        fields["m"] = _as_given(outcome.metadata)
    return Change(claim.step_uuid, claim.task_uuid, "ok", fields)


def lost_change(found: Mapping[str, Any], step: StepPlan, random: float) -> Change:
    """The change for a step whose worker is gone: retried, or failed for good where it may run only once (rule 11)."""
    worker = found.get("worker")
    failure = Failure(
        message=_lost_message(found, step),
        error_type="worker_lost",
        retryable=step.on_worker_lost != "fail",
        metadata={"worker": worker, "overdue": bool(found.get("overdue"))},
        handler=step.handler.callable,
    )
    kind, delay_ms, rest = _failed(step, found["attempt"], failure, random)
    note = {"lost": True, "reason": "worker_lost", "worker": worker}
    fields = {"k": found["k"], **_bearer(worker), "n": note, **rest}
    return Change(found["s"], found["t"], kind, fields, delay_ms)


def simple_change(kind: str, step: str, task: str, token: int | None = None, **fields: Any) -> Change:
    """A change without an outcome (release, promote, unhold, fail); `fields` are further keys of the item."""
    return Change(step, task, kind, {"k": token, **fields} if token is not None else fields)


def released_change(claim: Claim, note: Mapping[str, str], delay_ms: int | None = None) -> Change:
    """The change for a claim that is given back without an attempt: to the queue, or to wait for `delay_ms` (H-85)."""
    kind, when = ("release", {}) if delay_ms is None else ("defer", {"d": delay_ms})
    fields = {"n": _as_given(note), **when, **_bearer(claim.worker)}
    return simple_change(kind, claim.step_uuid, claim.task_uuid, claim.token, **fields)


def with_growth(change: Change, growth: Growth) -> Change:
    """The change together with the steps that it creates, valid for that version of the task's graph (rule 8)."""
    created = {"x": growth.steps} if growth.steps else {}
    return replace(change, fields={**change.fields, "gv": growth.version, **created})


def _bearer(worker: str | None) -> dict[str, str]:
    """Whose token it is, where that is known."""
    return {"w": worker} if worker else {}


def _failed(step: StepPlan, attempt: int, failure: Failure, random: float) -> tuple[str, int | None, dict[str, Any]]:
    """The kind of the change, its delay, and the fields that say why."""
    decision = decide_failure(step.retry, attempt, failure, random)
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
        return "fail", None, {"e": _storable(error | {"final": decision.message})}
    delay = decision.delay_ms
    return "retry", delay, {"d": delay, "e": _storable(error | {"retry_in_ms": delay})}


def _storable(error: dict[str, Any]) -> JsonText:
    """The failure as JSON that can always be stored: when something in it cannot, all of it becomes printable text."""
    try:
        return encode(error)
    except NotStorable:
        texts = {key: _printable(value) if isinstance(value, str) else value for key, value in error.items()}
        detail = _printable(json.dumps(error, default=str, ensure_ascii=False))[:DETAIL_LIMIT]
        return _as_given({**texts, "metadata": {}, "detail": detail})


def _as_given(value: Mapping[str, Any]) -> JsonText:
    """What a user's code says beside its result: whether that can be stored is for the database to say."""
    return JsonText(json.dumps(dict(value)))


def _printable(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode().replace("\0", "\\x00")


def _lost_message(found: Mapping[str, Any], step: StepPlan) -> str:
    why = "did not finish before its deadline" if found.get("overdue") else "stopped renewing its lease"
    end = "; the step may run only once (on_worker_lost: fail)" if step.on_worker_lost == "fail" else ""
    return f"the worker that had started this step {why}{end}"
