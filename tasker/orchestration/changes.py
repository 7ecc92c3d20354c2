"""Outcomes of attempts as changes that the engine understands: encoded once, as the JSON text of one item each."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tasker.contracts.execution import Claim, Failure, Outcome
from tasker.contracts.plan import StepPlan
from tasker.lifecycle.retry import Fail, decide_failure
from tasker.lifecycle.storable import NotStorable, encode
from tasker.services.engine.graph import Growth

DETAIL_LIMIT = 100_000
"""Characters that are kept of a failure that cannot be stored as it is."""


@dataclass(frozen=True, slots=True)
class Change:
    """One item of `tasker.advance_v1`: what becomes of one step. `text` is its JSON, `delay_ms` that of a retry."""

    step_uuid: str
    task_uuid: str
    kind: str
    text: str
    delay_ms: int | None = None


def change_of(outcome: Outcome, result_text: str | None, step: StepPlan, random: float) -> Change:
    """The change for an outcome: `ok`, or `retry` with its delay, or `fail` (part D section 5).

    `result_text` is the result's JSON; `random` in [0, 1) places a retry's delay inside its jitter.
    """
    claim = outcome.claim
    if outcome.failure is None:
        metadata = f',"m":{json.dumps(dict(outcome.metadata))}' if outcome.metadata else ""
        body = f'"kind":"ok","ms":{outcome.duration_ms},"r":{result_text or "null"}{metadata}'
        return _change(claim, "ok", body)
    kind, delay_ms, rest = _failed(step, claim.attempt, outcome.failure, random)
    return _change(claim, kind, f'"ms":{outcome.duration_ms},{rest}', delay_ms)


def lost_change(found: Mapping[str, Any], step: StepPlan, random: float) -> Change:
    """The change for a step whose worker is gone: retried, or failed for good where it may run only once (rule 11)."""
    failure = Failure(
        message=_lost_message(found, step),
        error_type="worker_lost",
        retryable=step.on_worker_lost != "fail",
        metadata={"worker": found.get("worker"), "overdue": bool(found.get("overdue"))},
        handler=step.handler.callable,
    )
    kind, delay_ms, rest = _failed(step, found["attempt"], failure, random)
    note = json.dumps({"lost": True, "reason": "worker_lost", "worker": found.get("worker")})
    worker = f'"w":"{found["worker"]}",' if found.get("worker") else ""
    text = f'{{"s":"{found["s"]}","t":"{found["t"]}","k":{found["k"]},{worker}"n":{note},{rest}}}'
    return Change(found["s"], found["t"], kind, text, delay_ms)


def simple_change(kind: str, step: str, task: str, token: int | None = None, **fields: Any) -> Change:
    """A change without an outcome (release, promote, unhold, fail); `fields` are further keys of the item."""
    item = {"s": step, "t": task, "kind": kind, **({"k": token} if token is not None else {}), **fields}
    return Change(step, task, kind, json.dumps(item))


def released_change(claim: Claim, note: Mapping[str, str], delay_ms: int | None = None) -> Change:
    """The change for a claim that is given back without an attempt: to the queue, or to wait for `delay_ms` (H-85)."""
    kind, when = ("release", {}) if delay_ms is None else ("defer", {"d": delay_ms})
    worker = {"w": claim.worker} if claim.worker else {}
    return simple_change(kind, claim.step_uuid, claim.task_uuid, claim.token, n=dict(note), **when, **worker)


def with_growth(change: Change, growth: Growth) -> Change:
    """The change together with the steps that it creates, valid for that version of the task's graph (rule 8)."""
    extra = f',"gv":{growth.version}' + (f',"x":{json.dumps(growth.steps)}' if growth.steps else "")
    return replace(change, text=f"{change.text[:-1]}{extra}}}")


def items_text(changes: Sequence[Change]) -> str:
    """The changes as a JSON array."""
    return f"[{','.join(change.text for change in changes)}]"


def _change(claim: Claim, kind: str, body: str, delay_ms: int | None = None) -> Change:
    worker = f'"w":"{claim.worker}",' if claim.worker else ""
    text = f'{{"s":"{claim.step_uuid}","t":"{claim.task_uuid}","k":{claim.token},{worker}{body}}}'
    return Change(claim.step_uuid, claim.task_uuid, kind, text, delay_ms)


def _failed(step: StepPlan, attempt: int, failure: Failure, random: float) -> tuple[str, int | None, str]:
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
        error["final"] = decision.message
        return "fail", None, f'"kind":"fail","e":{_error_text(error)}'
    text = _error_text(error | {"retry_in_ms": decision.delay_ms})
    return "retry", decision.delay_ms, f'"kind":"retry","d":{decision.delay_ms},"e":{text}'


def _error_text(error: dict[str, Any]) -> str:
    """The failure as JSON that can always be stored: when something in it cannot, all of it becomes printable text."""
    try:
        return encode(error).text
    except NotStorable:
        texts = {key: _printable(value) if isinstance(value, str) else value for key, value in error.items()}
        detail = _printable(json.dumps(error, default=str, ensure_ascii=False))[:DETAIL_LIMIT]
        return json.dumps({**texts, "metadata": {}, "detail": detail})


def _printable(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode().replace("\0", "\\x00")


def _lost_message(found: Mapping[str, Any], step: StepPlan) -> str:
    why = "did not finish before its deadline" if found.get("overdue") else "stopped renewing its lease"
    end = "; the step may run only once (on_worker_lost: fail)" if step.on_worker_lost == "fail" else ""
    return f"the worker that had started this step {why}{end}"
