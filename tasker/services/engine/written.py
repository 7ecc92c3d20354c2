"""Counts of a write, for plugins: derived from its arguments and its answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from time import perf_counter, time
from typing import Any

import orjson

from tasker.contracts.hook_arguments import WriteCommitted
from tasker.contracts.json_text import JsonText

RESULTS = frozenset(("ok", "retry", "fail"))
"""Kinds of change that report the outcome of an attempt."""
NAMED_FAILURES = frozenset(("timeout", "worker_lost"))
"""Failures counted by their type; all others are counted as `error`."""


def written(function: str, args: Mapping[str, Any], answer: Mapping[str, Any], began: float) -> WriteCommitted:
    """Return the counts of `tasker.FUNCTION_v1`, called at `began` (`perf_counter`)."""
    duration_ms = (perf_counter() - began) * 1000
    accepted = list(_accepted(function, args, answer))
    worker, finished = args.get("worker"), answer.get("finished") or {}
    return WriteCommitted(
        function,
        duration_ms,
        queued=tuple((answer.get("sent") or {}).items()),
        unsent=answer.get("unsent") or 0,
        claimed=len(answer.get("claims") or ()),
        results=tuple(Counter(map(_result_type, accepted)).items()),
        own=sum(item.get("w") == worker for item in accepted) if worker else 0,
        ended=tuple(Counter(finished.values()).items()),
        lasted=_lasted(finished) if finished else (),
    )


def _lasted(finished: Mapping[str, str]) -> tuple[tuple[str, float], ...]:
    now_ms = time() * 1000
    return tuple([(state, max(0.0, now_ms - _created_ms(task))) for task, state in finished.items()])


def _created_ms(task_uuid: str) -> int:
    """Decode the creation time from the first 48 bits of a task's id."""
    return int(task_uuid[:8] + task_uuid[9:13], 16)


def _accepted(function: str, args: Mapping[str, Any], answer: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if function not in ("advance", "park"):
        return
    refused = answer.get("verdicts") or {}
    yield from (item for item in args["items"] if item["kind"] in RESULTS and item["s"] not in refused)


def _result_type(item: Mapping[str, Any]) -> str:
    if item["kind"] == "ok":
        return "success"
    error = item.get("e") or {}
    found = orjson.loads(error.text) if isinstance(error, JsonText) else error
    kind = found.get("error_type")
    return kind if kind in NAMED_FAILURES else "error"
