"""Compensations: steps that undo the effects of others, made of their `compensate`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from tasker.template.documents import StepDraft
from tasker.template.failure_words import FAIL_TASK
from tasker.template.step_types import DEFAULT, StepType

UNDO: Final = ".undo"
"""Suffix of the names of compensations."""


def may_be_undone(type_: StepType) -> bool:
    """Return whether `compensate` fits a step of this type: it runs a handler, once, and creates no other steps."""
    return type_.traits.waits is None and not type_.expands and not type_.is_pattern


def with_compensations(drafts: Sequence[StepDraft]) -> list[StepDraft]:
    """Return the steps, and behind them one for each `compensate`, with the inputs of the step that it undoes."""
    return [*drafts, *(_undoing(draft) for draft in drafts if _is_undone(draft))]


def _is_undone(draft: StepDraft) -> bool:
    written = isinstance(draft.values.get("compensate"), dict) and "handler" in draft.values["compensate"]
    return written and draft.type is not None and may_be_undone(draft.type) and draft.made_for is None


def _undoing(draft: StepDraft) -> StepDraft:
    return replace(
        draft,
        name=draft.name + UNDO,
        type=DEFAULT,
        depends_on=(),
        values={"name": draft.name + UNDO, **draft.values["compensate"]},
        on_failure=FAIL_TASK,
        run_on_failure=None,
        handles=None,
        undoes=draft.name,
    )
