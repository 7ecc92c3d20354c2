"""Reuse of idempotency keys: with the same input a key names the same task, with another input it is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from tasker.db.connection import Statements
from tasker.db.sql_files import query
from tasker.errors import DuplicateTask, IdempotencyKeyReused
from tasker.services.submission.lost_commit import retry_read_once
from tasker.template.schema_check import SchemaMismatch

if TYPE_CHECKING:
    from tasker.services.submission.submit import Draft

OTHER_INPUTS = query("tasks", "other_inputs")
MOST_DIFFERENCES = 10
HINT = "submit it with another key, or with the input of the existing task"

R = TypeVar("R")


async def refuse_reused_keys(
    connection: Statements, drafts: Sequence[Draft], results: Sequence[R | DuplicateTask]
) -> list[R | DuplicateTask]:
    """Return the results with `IdempotencyKeyReused` in place of each `DuplicateTask` whose task has another input."""
    answers = list(results)
    duplicates = [
        (place, draft, result)
        for place, (draft, result) in enumerate(zip(drafts, results, strict=True))
        if draft.keyed and isinstance(result, DuplicateTask)
    ]
    if duplicates:
        identities, inputs = zip(*((draft.identity, draft.input) for _, draft, _ in duplicates), strict=True)
        params = {"identities": list(identities), "inputs": list(inputs)}
        for number, stored in await retry_read_once(partial(connection.execute, OTHER_INPUTS, params)):
            place, draft, duplicate = duplicates[number - 1]
            answers[place] = key_reused(duplicate, stored, draft)
    return answers


def key_reused(duplicate: DuplicateTask, stored: str, draft: Draft) -> IdempotencyKeyReused:
    """Return the error that names the paths where the stored input (JSON) differs, without values."""
    problems = list(islice(differences(json.loads(stored), json.loads(draft.input)), MOST_DIFFERENCES))
    lines = "\n".join(f"  {problem.path}: {problem.message}" for problem in problems)
    return IdempotencyKeyReused(
        f"the idempotency key was used for a task with another input:\n{lines}",
        task_uuid=duplicate.task_uuid,
        state=duplicate.state,
        steps=duplicate.steps,
        problems=problems,
        hint=HINT,
    )


def differences(stored: Any, given: Any, path: str = "$") -> Iterator[SchemaMismatch]:
    """Yield each path where the given JSON value differs from the stored one."""
    if isinstance(stored, dict) and isinstance(given, dict):
        yield from _of_members(stored, given, {key: f"{path}.{key}" for key in sorted({*stored, *given})})
    elif isinstance(stored, list) and isinstance(given, list):
        longest = range(max(len(stored), len(given)))
        members = dict(enumerate(stored)), dict(enumerate(given))
        yield from _of_members(*members, {index: f"{path}[{index}]" for index in longest})
    elif stored != given or isinstance(stored, bool) != isinstance(given, bool):
        yield SchemaMismatch(path, "differs from the existing task")


def _of_members(
    stored: Mapping[Any, Any], given: Mapping[Any, Any], paths: Mapping[Any, str]
) -> Iterator[SchemaMismatch]:
    for key, path in paths.items():
        if key in stored and key in given:
            yield from differences(stored[key], given[key], path)
        else:
            yield SchemaMismatch(
                path, "is not in the existing task" if key in given else "is only in the existing task"
            )
