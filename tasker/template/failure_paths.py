"""Failure paths of a template: the word of each step, and the steps that others run when they fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tasker.template.documents import StepDraft
from tasker.template.failure_words import FAIL_TASK, OPTIONAL, RUN, SKIP_CASCADE


def with_failure_paths(drafts: Sequence[StepDraft], document: Mapping[str, Any]) -> list[StepDraft]:
    """Return the steps with their words, and with the dependencies of failure branches.

    A failure branch depends on the step whose failure creates it. A convergence of a failure branch also waits for that
    step, so that it does not run before it is known whether there is a branch.
    """
    named = frozenset(document.get("finally", ()))
    drafts = [replace(draft, at_rest=True) if draft.name in named else draft for draft in drafts]
    default = SKIP_CASCADE if document.get("completion") == "partial" else document.get("on_failure", FAIL_TASK)
    owners = _owners(drafts)
    if default == FAIL_TASK and not any(key in draft.values for draft in drafts for key in ("on_failure", "optional")):
        return list(drafts)
    drafts = [_with_word(draft, default, owners) for draft in drafts]
    branches = _branches(drafts)
    return [_joining(draft, branches) for draft in drafts]


def branch_of(values: Mapping[str, Any]) -> str | None:
    """Return the step that `on_failure: {run: STEP}` names."""
    word = values.get("on_failure")
    return word.get("run") if isinstance(word, Mapping) else None


def _owners(drafts: Sequence[StepDraft]) -> dict[str, str]:
    """Return the failure branches, each with the first step that names it."""
    owners: dict[str, str] = {}
    for draft in drafts:
        has_many = "for_each" in draft.values or (draft.type is not None and draft.type.is_pattern)
        if (branch := branch_of(draft.values)) is not None and branch != draft.name and not has_many:
            owners.setdefault(branch, draft.name)
    return owners


def _with_word(draft: StepDraft, default: str, owners: Mapping[str, str]) -> StepDraft:
    values, owner = draft.values, owners.get(draft.name)
    branch = branch_of(values)
    if branch is not None:
        word = RUN
    elif values.get("optional"):
        word = OPTIONAL
    else:  # nobody handles the failure of a failure branch or of a last step, whatever the template's default is
        word = values.get("on_failure", default if owner is None and not draft.at_rest else FAIL_TASK)
    depends_on = draft.depends_on if owner is None or owner in draft.depends_on else (*draft.depends_on, owner)
    return replace(draft, on_failure=word, run_on_failure=branch, handles=owner, depends_on=depends_on)


def _branches(drafts: Sequence[StepDraft]) -> dict[str, str]:
    """Return the steps that exist only after a failure, each with the step that fails."""
    below: dict[str, list[StepDraft]] = {}
    for draft in drafts:
        for name in draft.depends_on:
            below.setdefault(name, []).append(draft)
    branches = {draft.name: draft.handles for draft in drafts if draft.handles is not None}
    waiting = list(branches)
    while waiting:
        name = waiting.pop()
        for draft in below.get(name, ()):
            if draft.name not in branches and draft.type is not None and not draft.type.converges:
                branches[draft.name] = branches[name]
                waiting.append(draft.name)
    return branches


def _joining(draft: StepDraft, branches: Mapping[str, str]) -> StepDraft:
    if draft.type is None or not draft.type.converges:
        return draft
    added = [branches[name] for name in draft.depends_on if name in branches]
    return replace(draft, depends_on=tuple(dict.fromkeys((*draft.depends_on, *added))))
