"""Strict parser of the outcome of a batchable step, and the inputs of its workers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from tasker.dataclasses import dataclass
from tasker.engine.expansion.outcomes import (
    describe,
    did_you_mean,
    is_count,
    malformed,
    outcome_of,
    refuse_unknown_keys,
)
from tasker.handlers.outcome_forms import BATCH_FIELDS, BATCH_KEY, CURSOR_FIELDS, BatchType, batch_id, range_length
from tasker.template.plan import BatchSettings

PLACEHOLDER_CURSOR: Mapping[str, Any] = {"batch_id": "001", "start_cursor": 0, "end_cursor": 0, "batch_size": 0}
"""Cursor of the single placeholder worker that is created when there are no batches."""

_EXAMPLE = (
    "self.batch_analyzer_success(cursor_configs=..., total_items=..., worker_template_name=...), or "
    '{"batch_processing_outcome": {"type": "no_batches"}}'
)
_TYPES = tuple(BatchType)
_OLDER = {"CreateBatches": "create_batches", "NoBatches": "no_batches", "NoOp": "no_batches"}


@dataclass(frozen=True, slots=True)
class ParsedBatches:
    """Batches of a step: one worker of the step `pattern` per cursor. No cursors: no batches."""

    pattern: str | None = None
    cursors: tuple[Mapping[str, Any], ...] = ()
    total_items: int = 0

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about apparently lost or duplicated items; never an error, since sparse ranges are legal."""
        return tuple(_warnings(self))


NO_BATCHES = ParsedBatches()


def parse_batches(result: Any) -> ParsedBatches:
    """Parse the batches in a step's result.

    Cursors are taken in wire form and in the published class's own; `batch_id` defaults to the position (`001`),
    `batch_size` to the length of a range of whole numbers. Raises `OutcomeError` for no outcome, an unknown type or
    key, counts that disagree, repeated batch ids.
    """
    outcome = outcome_of(result, BATCH_KEY, _EXAMPLE)
    _check_type(outcome)
    refuse_unknown_keys(BATCH_KEY, outcome, BATCH_FIELDS)
    if outcome["type"] == BatchType.NO_BATCHES:
        return NO_BATCHES
    cursors = _cursors(outcome.get("cursor_configs"))
    _check_counts(outcome, len(cursors))
    pattern = outcome.get("worker_template_name")
    if not isinstance(pattern, str) or not pattern:
        raise malformed(BATCH_KEY, f"needs 'worker_template_name', the name of a step; found {describe(pattern)}")
    return ParsedBatches(pattern, cursors, outcome["total_items"])


def worker_inputs(cursor: Mapping[str, Any], settings: BatchSettings | None, *, no_op: bool = False) -> dict[str, Any]:
    advice = settings or BatchSettings()
    return {
        "cursor": dict(cursor),
        "batch_metadata": {
            "checkpoint_interval": advice.checkpoint_interval,
            "cursor_field": advice.cursor_field,
            "failure_strategy": advice.failure_strategy,
        },
        "is_no_op": no_op,
    }


def instance_name(pattern: str, index: int) -> str:
    """Return the name of the worker at `index` (from 0): `process_001`; beyond 999 the number gets a fourth digit."""
    return f"{pattern}_{batch_id(index)}"


def instance_number(name: str, pattern: str) -> int:
    """Return the number in an instance's name; instances are ordered by it, not by text."""
    return int(name.removeprefix(f"{pattern}_"))


def _check_type(outcome: Mapping[str, Any]) -> None:
    kind = outcome.get("type")
    if kind in _TYPES:
        return
    if isinstance(kind, str) and kind in _OLDER:
        raise malformed(BATCH_KEY, f"has the type '{kind}', an older spelling", f"write '{_OLDER[kind]}'")
    hint = did_you_mean(kind, _TYPES) if isinstance(kind, str) else 'expected "create_batches" or "no_batches"'
    problem = "has no 'type'" if kind is None else f"has an unknown type: {describe(kind)}"
    raise malformed(BATCH_KEY, problem, hint)


def _check_counts(outcome: Mapping[str, Any], cursors: int) -> None:
    for key in ("worker_count", "total_items"):
        if not is_count(outcome.get(key)):
            raise malformed(BATCH_KEY, f"needs '{key}', a whole number from 0; found {describe(outcome.get(key))}")
    count = outcome["worker_count"]
    if count != cursors:
        raise malformed(BATCH_KEY, f"has worker_count {count} and {cursors} cursor_configs; they must agree")


def _cursors(configs: Any) -> tuple[Mapping[str, Any], ...]:
    if not isinstance(configs, (list, tuple)):
        raise malformed(BATCH_KEY, f"needs 'cursor_configs', a list; found {describe(configs)}")
    if not configs:
        raise malformed(BATCH_KEY, "is create_batches without cursor_configs", "no_batches says that")
    cursors = tuple(_cursor(config, index) for index, config in enumerate(configs))
    _refuse_repeated_ids(cursors)
    return cursors


def _refuse_repeated_ids(cursors: Sequence[Mapping[str, Any]]) -> None:
    first: dict[str, int] = {}
    for index, cursor in enumerate(cursors):
        if first.setdefault(cursor["batch_id"], index) != index:
            places = f"cursor_configs[{first[cursor['batch_id']]}] and [{index}]"
            raise malformed(BATCH_KEY, f"has the batch_id '{cursor['batch_id']}' twice: {places}")


def _cursor(config: Any, index: int) -> Mapping[str, Any]:
    place = f"{BATCH_KEY}.cursor_configs[{index}]"
    if not isinstance(config, Mapping):
        raise malformed(place, f"must be an object, found {describe(config)}")
    refuse_unknown_keys(place, config, CURSOR_FIELDS)
    for key in ("start_cursor", "end_cursor"):
        if key not in config:
            raise malformed(place, f"has no '{key}'")
    extra = {"step_size": _step_size(config, place), "metadata": config.get("metadata")}
    return {
        "batch_id": _batch_id(config, index, place),
        "start_cursor": config["start_cursor"],
        "end_cursor": config["end_cursor"],
        "batch_size": _batch_size(config, place),
    } | {key: value for key, value in extra.items() if value and value != 1}


def _batch_id(config: Mapping[str, Any], index: int, place: str) -> str:
    value = config.get("batch_id")
    if value is None:
        return batch_id(index)
    if not isinstance(value, str) or not value:
        raise malformed(place, f"needs a text as 'batch_id', found {describe(value)}")
    return value


def _step_size(config: Mapping[str, Any], place: str) -> int:
    step: Any = config.get("step_size", 1)
    if not is_count(step) or step == 0:
        raise malformed(place, f"needs a whole number from 1 as 'step_size', found {describe(step)}")
    return int(step)


def _batch_size(config: Mapping[str, Any], place: str) -> int:
    size: Any = config.get("batch_size")
    if size is None:
        size = _range_length(config)
    if not is_count(size):
        raise malformed(
            place,
            f"needs 'batch_size', a whole number from 0; found {describe(config.get('batch_size'))}",
            "only a range of whole numbers can do without it",
        )
    return int(size)


def _range_length(cursor: Mapping[str, Any]) -> int | None:
    return range_length(cursor["start_cursor"], cursor["end_cursor"], int(cursor.get("step_size", 1)))


def _warnings(batches: ParsedBatches) -> Iterator[str]:
    total = sum(cursor["batch_size"] for cursor in batches.cursors)
    if total != batches.total_items:
        yield f"the batch sizes add up to {total}, total_items is {batches.total_items}"
    for cursor in batches.cursors:
        length = _range_length(cursor)
        if length is not None and length != cursor["batch_size"]:
            yield f"batch '{cursor['batch_id']}' spans {length} items and says batch_size {cursor['batch_size']}"
    yield from _seams(batches.cursors)


def _seams(cursors: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield warnings for neighbouring integer ranges that overlap or leave a gap."""
    if any(_range_length(cursor) is None for cursor in cursors):
        return
    for left, right in pairwise(sorted(cursors, key=lambda cursor: (cursor["start_cursor"], cursor["end_cursor"]))):
        if left["end_cursor"] != right["start_cursor"]:
            word = "overlap" if left["end_cursor"] > right["start_cursor"] else "leave a gap"
            yield f"the batches '{left['batch_id']}' and '{right['batch_id']}' {word}"
