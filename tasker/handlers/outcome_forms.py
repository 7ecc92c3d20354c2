"""Forms in which handlers return decisions and batches, and in which the planner reads them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

DECISION_KEY = "decision_point_outcome"
"""Key of a decision step's result that holds its outcome."""

BATCH_KEY = "batch_processing_outcome"
"""Key of a batchable step's result that holds its outcome."""


class DecisionType(StrEnum):
    """Outcomes of a decision."""

    CREATE_STEPS = "create_steps"
    NO_BRANCHES = "no_branches"


class BatchType(StrEnum):
    """Outcomes of a batchable step."""

    CREATE_BATCHES = "create_batches"
    NO_BATCHES = "no_batches"


class DecisionForm(NamedTuple):
    """Keys of one form of a decision: of its type, of the step names, and all allowed keys."""

    type_key: str
    names_key: str
    known: tuple[str, ...]


_NOTES = ("reason", "routing_context")
WIRE = DecisionForm("type", "step_names", ("type", "step_names", *_NOTES))
PUBLISHED = DecisionForm(
    "decision_type", "next_step_names", ("decision_type", "next_step_names", "dynamic_steps", *_NOTES)
)
"""The form with the field names of `DecisionPointOutcome`."""

BATCH_FIELDS = ("type", "worker_template_name", "worker_count", "cursor_configs", "total_items")
CURSOR_FIELDS = ("batch_id", "start_cursor", "end_cursor", "batch_size", "step_size", "metadata")


def decision_form(outcome: Mapping[str, Any]) -> DecisionForm:
    """Return the form that the outcome has."""
    return PUBLISHED if PUBLISHED.type_key in outcome else WIRE


def batch_id(index: int) -> str:
    """Return the id of the batch at `index` (from 0): `001`, `002`, ...; beyond 999 it gets a fourth digit."""
    return f"{index + 1:03}"


def range_length(start: Any, end: Any, step_size: int) -> int | None:
    """Return the number of items in a range of integers, end exclusive, or None for other cursors."""
    if type(start) is not int or type(end) is not int:
        return None
    return len(range(start, end, step_size))
