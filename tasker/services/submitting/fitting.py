"""Whether what a task is created with fits: its context the template's `input_schema`, its options their columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any
from uuid import UUID

from tasker.contracts.plan import Plan
from tasker.contracts.rules.limits import MAX_PRIORITY, MIN_PRIORITY
from tasker.contracts.tracing import checked
from tasker.errors import InputInvalid, NotStorable, UsageError
from tasker.lifecycle.sensitive import without_secrets
from tasker.lifecycle.storable import text_problem
from tasker.template.schema.check import SchemaMismatch, check_input
from tasker.template.schema.messages import found

if TYPE_CHECKING:
    from tasker.services.submitting.submission import Submission

MOST_INDEXED_BYTES = 2_600
"""Of a text that lists of tasks are filtered by: an entry of its index takes at most a third of a page."""
_NUMBERS_BELOW = 2**63
_NO_TEXTS = (str, bytes, bytearray, Mapping)


def input_problems(plan: Plan, context: Any) -> list[SchemaMismatch]:
    """As `check_input`, in words that hold nothing sensitive; an input is an object, with or without a schema."""
    if not isinstance(context, Mapping):
        return [
            SchemaMismatch("$", f"expected an object, found {'a text' if isinstance(context, str) else found(context)}")
        ]
    schema = plan.input_schema or {}
    return [
        SchemaMismatch(each.path, without_secrets(each.message, schema, context)) for each in check_input(plan, context)
    ]


def as_dict(context: Any) -> Any:
    """A mapping of any kind as the object that is checked and stored; anything else as it is, to be refused."""
    return dict(context) if isinstance(context, Mapping) else context


def require_fit(plan: Plan, context: Mapping[str, Any]) -> None:
    """Raises `InputInvalid` with every problem."""
    if problems := input_problems(plan, context):
        lines = "\n".join(f"  {problem.path}: {problem.message}" for problem in problems)
        raise InputInvalid(
            f"the input does not fit the template {plan.namespace}/{plan.name}:\n{lines}", problems=problems
        )


def check_priority(value: Any) -> int:
    """The priority of a task. Raises `UsageError` for what its column cannot hold."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    if whole and MIN_PRIORITY <= value <= MAX_PRIORITY:
        return int(value)
    raise UsageError(
        f"priority: expected a whole number from {MIN_PRIORITY} to {MAX_PRIORITY}, found {value!r:.80}",
        hint="0 is the usual priority; of the steps behind a full queue the higher ones enter it first",
    )


def trace_item(request: Submission) -> dict[str, Any]:
    """The trace of a task as the engine takes it. Raises `UsageError` for what is none."""
    try:
        trace = checked(request.traceparent, request.tracestate)
    except ValueError as error:
        raise UsageError(str(error), hint="leave it out where the task belongs to no trace") from None
    return {"trace": trace.headers()} if trace else {}


def option_item(request: Submission, limit_bytes: int) -> dict[str, Any]:
    """The options of a task as the engine takes them, all but its trace and its key.

    Texts that are indexed have at most `MOST_INDEXED_BYTES`, the reason `limit_bytes`; None is as left out, and of
    a number the database makes a text. Raises `UsageError` for what is of another kind, `NotStorable` for a text that
    no column takes.
    """
    return {
        "priority": check_priority(request.priority),
        "correlation": _uuid_or_none(request.correlation_id, "correlation_id"),
        "parent_correlation": _uuid_or_none(request.parent_correlation_id, "parent_correlation_id"),
        "initiator": _text_or_none(request.initiator, "initiator"),
        "source_system": _text_or_none(request.source_system, "source_system"),
        "reason": _text_or_none(request.reason, "reason", limit_bytes),
        "tags": _tags(request.tags),
    }


def check_key(value: Any) -> str | None:
    """The idempotency key, None where there is none. Raises `UsageError` for what is no text."""
    if value is None or isinstance(value, str):
        return value
    hint = "give a text that names this submission, or leave it out"
    raise mistake("idempotency_key", "a text", value, hint)


def uuid_text(value: Any, name: str) -> str:
    """A UUID in its usual form, from its text or as an object. Raises `UsageError`; `name` is what it is of."""
    if isinstance(value, UUID):
        return str(value)
    try:
        return str(UUID(value))
    except (ValueError, TypeError, AttributeError):
        hint = "other identifiers are for tags, or for the input" if "correlation" in name else None
        raise mistake(name, "a UUID", value, hint) from None


def _tags(value: Any) -> list[str | float]:
    if isinstance(value, _NO_TEXTS) or not isinstance(value, Iterable):
        raise mistake("tags", "a list of texts", value, "one tag is a list, too: ['urgent']")
    return [_text(tag, f"tags[{number}]") for number, tag in enumerate(value)]


def _text(value: Any, name: str, limit_bytes: int = MOST_INDEXED_BYTES) -> str | float:
    """A text that can be stored, or a number, of which the database makes one."""
    if not isinstance(value, str):
        if isinstance(value, (int, float)) and -_NUMBERS_BELOW < value < _NUMBERS_BELOW:
            return value
        raise mistake(name, "a text", value, "convert it with str()")
    if problem := text_problem(value):
        raise NotStorable.at(name, problem, hint="take it out")
    if len(value) * 4 > limit_bytes and (size := len(value.encode())) > limit_bytes:
        reason = f"{size:,} bytes are more than the {limit_bytes:,} allowed"
        raise NotStorable.at(name, reason, too_large=True, hint="shorten it; what is long belongs into the input")
    return value


def mistake(name: str, expected: str, found: Any, hint: str | None = None) -> UsageError:
    """The error of a value of another kind than is expected there."""
    return UsageError(f"{name}: expected {expected}, found {found!r:.80}", hint=hint)


def _uuid_or_none(value: Any, name: str) -> str | None:
    return None if value is None else uuid_text(value, name)


def _text_or_none(value: Any, name: str, limit_bytes: int = MOST_INDEXED_BYTES) -> str | float | None:
    return None if value is None else _text(value, name, limit_bytes)
