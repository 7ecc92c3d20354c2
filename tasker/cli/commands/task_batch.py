"""`tasker task submit --batch`: tasks from a file with one JSON object per line, and one outcome per line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click

from tasker.cli.connection import actor
from tasker.cli.render.values import echo
from tasker.cli.run.input import without_repeats
from tasker.dataclasses import dataclass
from tasker.errors import DuplicateTask, IdempotencyKeyReused, TaskerError, UsageError
from tasker.errors.remedies import command_form
from tasker.services.submission.check import check_priority
from tasker.services.submission.registered import TemplateSubmission
from tasker.services.submission.starts import TIMES, start_texts
from tasker.services.submission.submit import Submission
from tasker.services.wording import counted
from tasker.services.workflows.targets import RegisteredName, registered_name

if TYPE_CHECKING:
    from tasker.cli.remote.fleet import Fleet
    from tasker.services.submission.submit import OnDuplicate, SubmissionResult

TOGETHER = 500
"""Maximum number of tasks per request; `TOGETHER_BYTES` limits its size."""
TOGETHER_BYTES = 4_000_000
NAMED = ("namespace", "name", "version")
STARTS = frozenset({"run_at", "delay"})
"""Fields that say when a task begins: a line that has one replaces the options of the command."""
KINDS: Mapping[str, type] = {"context": dict, "priority": object, "tags": list}
"""Type of the fields that are not strings; a priority is checked by `check_priority`."""
IN_WORDS: Mapping[type, str] = {dict: "an object", list: "a list of strings", str: "a text"}


@dataclass(frozen=True, slots=True)
class BatchLine:
    """Line of the file, with its submission or the error in it."""

    number: int
    size: int
    asked: TemplateSubmission | TaskerError


@dataclass(frozen=True, slots=True)
class Defaults:
    """Values for lines that do not set them."""

    target: str | None
    options: Mapping[str, Any]

    def read(self, text: bytes) -> TemplateSubmission:
        """Parse a line into a submission. Raises `UsageError`."""
        arguments = _object(text)
        known = {*NAMED, *(field.name for field in fields(Submission))}
        if unknown := sorted({*arguments} - known):
            raise UsageError(f"unknown: {', '.join(unknown)}", hint=f"expected one of: {', '.join(sorted(known))}")
        for name, value in arguments.items():
            _check(name, value)
        options = dict(self.options)
        if arguments.keys() & STARTS:
            options = {name: value for name, value in options.items() if name not in STARTS}
        request = {"initiator": actor(), "source_system": "tasker task submit", **options}
        request |= {name: value for name, value in arguments.items() if name not in NAMED}
        check_priority(request.get("priority"))
        start_texts(**{name: request.get(name) for name in TIMES})
        return TemplateSubmission(*self._name(arguments), Submission(**request))

    def _name(self, given: Mapping[str, Any]) -> RegisteredName:
        if "name" in given:
            if "namespace" not in given:
                raise UsageError("name without namespace", hint='for example {"namespace": "shop", "name": ...}')
            return RegisteredName(given["namespace"], given["name"], given.get("version"))
        if self.target is None:
            hint = 'write {"namespace": ..., "name": ...} in the line, or NAMESPACE/NAME in the command'
            raise UsageError("no template", hint=hint)
        return registered_name(self.target)


async def submit_all(
    app: Fleet, file: Iterable[bytes], defaults: Defaults, on_duplicate: OnDuplicate, form: str
) -> int:
    """Submit the tasks of a file and print the outcome of each line; return the number of refused lines."""
    refused = total = 0
    for lines in _together(_lines(file, defaults)):
        answers = await _answers(app, lines, on_duplicate)
        for line, answer in zip(lines, answers, strict=True):
            total += 1
            refused += isinstance(answer, TaskerError)
            echo(json.dumps(_object_of(line, answer)) if form == "json" else _text_of(line, answer))
    click.echo(f"{counted(total, 'line')}, {refused} refused", err=True)
    return refused


async def _answers(
    app: Fleet, lines: Sequence[BatchLine], on_duplicate: OnDuplicate
) -> list[SubmissionResult | TaskerError]:
    orders = [line.asked for line in lines if isinstance(line.asked, TemplateSubmission)]
    try:
        answered = iter(await app.submissions.submit_many(orders, on_duplicate=on_duplicate) if orders else ())
    except TaskerError:
        which = f"lines {lines[0].number} to {lines[-1].number} got no response: their tasks may exist"
        click.echo(f"{which}; lines with an idempotency_key are safe to repeat", err=True)
        raise
    return [line.asked if isinstance(line.asked, TaskerError) else next(answered) for line in lines]


def _lines(file: Iterable[bytes], defaults: Defaults) -> Iterator[BatchLine]:
    for number, text in enumerate(file, 1):
        if not text.strip():
            continue
        try:
            yield BatchLine(number, len(text), defaults.read(text))
        except UsageError as error:
            yield BatchLine(number, len(text), error)


def _together(lines: Iterator[BatchLine]) -> Iterator[list[BatchLine]]:
    held: list[BatchLine] = []
    size = 0
    for line in lines:
        if held and (len(held) == TOGETHER or size + line.size > TOGETHER_BYTES):
            yield held
            held, size = [], 0
        held.append(line)
        size += line.size
    if held:
        yield held


def _object(text: bytes) -> dict[str, Any]:
    try:
        value = json.loads(text, object_pairs_hook=without_repeats)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"invalid JSON: {error}", hint="write one JSON object in each line") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the line cannot be used: {error}") from None
    if not isinstance(value, dict):
        raise UsageError(f"expected a JSON object, got {text[:40].decode('utf-8', 'replace').strip()}")
    return value


def _check(name: str, value: Any) -> None:
    kind = KINDS.get(name, str)
    fine = isinstance(value, kind)
    if kind is list:
        fine = fine and all(isinstance(item, str) for item in value)
    if not fine:
        raise UsageError(f"{name}: expected {IN_WORDS[kind]}, got {json.dumps(value)[:80]}")


def _object_of(line: BatchLine, answer: SubmissionResult | TaskerError) -> dict[str, Any]:
    if isinstance(answer, TaskerError):
        existing = {"task_uuid": answer.task_uuid} if isinstance(answer, DuplicateTask) and answer.task_uuid else {}
        return {"line": line.number, **existing, "error": answer.to_dict()}
    reasons = {name: True for name in ("unique", "debounced") if getattr(answer, name)}
    return {"line": line.number, "task_uuid": answer.task_uuid, "created": answer.created, **reasons}


def _text_of(line: BatchLine, answer: SubmissionResult | TaskerError) -> str:
    if isinstance(answer, DuplicateTask) and answer.task_uuid and not isinstance(answer, IdempotencyKeyReused):
        return (
            f"{line.number}: refused: {answer.task_uuid} already has this identity; to return it: --on-duplicate return"
        )
    if isinstance(answer, TaskerError):
        hint = f" ({command_form(answer.hint)})" if answer.hint else ""
        return f"{line.number}: refused: {answer}{hint}"
    existing = " already runs under this unique key" if answer.unique else " already exists"
    existing = " is the task of this debounce key" if answer.debounced else existing
    return f"{line.number}: {answer.task_uuid}{'' if answer.created else existing}"
