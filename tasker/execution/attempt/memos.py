"""Stored results of pure steps (`memoize`): one is used in place of a call of the handler."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from tasker.errors import DatabaseError
from tasker.execution.attempt.attempt import Attempt, ClaimLost, Ending
from tasker.handlers.claims import Success
from tasker.json_values import WARN_BYTES, encode
from tasker.template.plan import StepPlan

MOST_RESULTS = 10_000
"""Maximum number of stored results of one step."""
MISSING = object()
_log = logging.getLogger("tasker.worker")


async def memoized(
    attempt: Attempt, memoize: Mapping[str, Any], call: Callable[[], Awaitable[Ending | ClaimLost]]
) -> Ending | ClaimLost:
    """Return the stored result for the key of the attempt, or call the handler and store its result.

    The result is stored before it is reported: it is right whatever becomes of the attempt. If the database cannot be
    asked, the handler is called.
    """
    key = memo_key(attempt, memoize)
    if key is None:
        return await call()
    fields: dict[str, Any] = {"template": attempt.claim.template, "ordinal": attempt.claim.ordinal, "key": key}
    if stored := await _asked(attempt, "recall", fields):
        result = encode(stored["result"], limit_bytes=attempt.result_limit_bytes)
        return Success(result, memoized={"task": stored["task"], "stored_at": stored["stored_at"]})
    ending = await call()
    if isinstance(ending, Success) and not ending.events and ending.encoded.size <= WARN_BYTES:
        kept = {"result": ending.encoded, "task": attempt.claim.task_uuid, "most": MOST_RESULTS}
        await _asked(attempt, "remember", {**fields, **kept, "ttl_ms": round(memoize["ttl_seconds"] * 1000)})
    return ending


def memo_key(attempt: Attempt, memoize: Mapping[str, Any]) -> str | None:
    """Return the key under which the result is stored; None: the data has no value for it.

    Without a `key` it is everything that the handler reads.
    """
    if (place := memoize["key"]) is not None:
        read: Any = _value_at(place, attempt)
        if read is MISSING or read is None:
            return None
    else:
        inputs = dict(attempt.task_context if attempt.inputs is None else attempt.inputs)
        read = [inputs, dict(attempt.dependency_results), dict(attempt.claim.inputs or {})]
    text = json.dumps([read, _settings(attempt.step)], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def _settings(step: StepPlan) -> Any:
    return step.handler.initialization


def _value_at(place: Mapping[str, Any], attempt: Attempt) -> Any:
    in_result = "step" in place
    found: Any = attempt.dependency_results.get(place["step"]) if in_result else attempt.task_context
    for part in place["path" if in_result else "input"]:
        try:
            found = found[part]
        except (KeyError, IndexError, TypeError):
            return MISSING
    return found


async def _asked(attempt: Attempt, action: str, fields: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        return await attempt.writes.memo(attempt, action, fields)
    except DatabaseError as error:
        _log.warning("memo_unavailable step=%s action=%s error=%s", attempt.claim.step_uuid, action, error)
        return {}
