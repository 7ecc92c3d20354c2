"""State transitions made by a write of this process, for plugins: derived from its arguments and its answer.

The database is not queried for them. Side effects are reported as far as the answer names them: steps claimed and tasks
ended, but not steps enqueued for other workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from time import perf_counter
from typing import Any, TypeAlias

import orjson

from tasker.contracts.hook_arguments import StateTransition
from tasker.contracts.json_text import JsonText
from tasker.lifecycle.machines.moves import CHANGES

TARGETS = {kind: str(path[-1]) for kind, move in CHANGES.items() for path in move.paths[:1]}
"""Target state of each kind of change, whatever the former state. A ready step continues from `pending`."""
PARKED = {"ok": "enqueued_for_orchestration"} | dict.fromkeys(("retry", "fail"), "enqueued_as_error_for_orchestration")
"""Target states if a worker leaves its results to an orchestrator."""


Made: TypeAlias = Callable[..., StateTransition]
"""Factory of transitions of one write, with its times filled in."""


def transitions_of(
    function: str, args: Mapping[str, Any], answer: Mapping[str, Any], began: float
) -> tuple[StateTransition, ...]:
    """Return the transitions made by `tasker.FUNCTION_v1`, called at `began` (`perf_counter`), in their order.

    The result is empty if the answer has none. Reads the clock.
    """
    targets = {"advance": TARGETS, "park": PARKED}.get(function, {})
    created = answer.get("created") if function == "submit" else ()
    answered_at = datetime.now(UTC)
    made = partial(
        StateTransition, asked_at=answered_at - timedelta(seconds=perf_counter() - began), answered_at=answered_at
    )
    changed, claimed = _changed(made, targets, args, answer), _claimed(made, args, answer)
    return (*_created(made, created), *changed, *claimed, *_ended(made, answer))


def closed_elsewhere(args: Mapping[str, Any], answer: Mapping[str, Any]) -> dict[str, str]:
    """Return the ended tasks with their states, except those for which the write reported a result of its own
    worker."""
    ended = answer.get("finished") or {}
    worker = args.get("worker")
    own = {item["t"] for item in args.get("items", ()) if item.get("w") == worker} if ended and worker else ()
    return {task: state for task, state in ended.items() if task not in own}


def _created(made: Made, tasks: Sequence[str] | None) -> Iterator[StateTransition]:
    yield from (made(task, None, "pending") for task in tasks or ())


def _changed(
    made: Made, targets: Mapping[str, str], args: Mapping[str, Any], answer: Mapping[str, Any]
) -> Iterator[StateTransition]:
    refused = answer.get("verdicts") or {}
    for item in args.get("items", ()) if targets else ():
        if item["s"] not in refused and item["kind"] in targets:
            told = _failure(item.get("e"))
            state = targets[item["kind"]]
            yield made(item["t"], item["s"], state, worker=item.get("w"), token=item.get("k"), **told)


def _failure(error: Any) -> dict[str, str | None]:
    if error is None:
        return {}
    found = orjson.loads(error.text) if isinstance(error, JsonText) else error
    return {"error_type": found.get("error_type"), "error_message": found.get("message")}


def _claimed(made: Made, args: Mapping[str, Any], answer: Mapping[str, Any]) -> Iterator[StateTransition]:
    for row in answer.get("claims") or ():
        yield made(row["task"], row["step"], "in_progress", worker=args.get("worker"), token=row["token"])


def _ended(made: Made, answer: Mapping[str, Any]) -> Iterator[StateTransition]:
    yield from (made(task, None, state) for task, state in (answer.get("finished") or {}).items())
