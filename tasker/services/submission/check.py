"""Validation of a submission: its context against the template's `input_schema`, its options against their columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from uuid import UUID

from tasker.errors import InputInvalid, NotStorable, TemplateError, UsageError
from tasker.json_values import text_problem
from tasker.logging.trace_context import checked
from tasker.redaction import without_secrets
from tasker.template.diagnostics import did_you_mean
from tasker.template.names import NAMED_PRIORITIES, PRIORITY_EXPECTED, parse_priority
from tasker.template.plan import Plan
from tasker.template.schema_check import SchemaMismatch, check_input
from tasker.template.schema_messages import found

if TYPE_CHECKING:
    from tasker.services.submission.submit import Submission

MOST_INDEXED_BYTES = 2_600
"""Maximum size of an indexed text: an index entry takes at most a third of a page."""
LONGEST_URL = 2000
_NUMBERS_BELOW = 2**63
_NO_TEXTS = (str, bytes, bytearray, Mapping)


def input_problems(plan: Plan, context: Any) -> list[SchemaMismatch]:
    """Return the problems of an input (see `check_input`), without sensitive values. An input must be an object."""
    if not isinstance(context, Mapping):
        return [
            SchemaMismatch("$", f"expected an object, found {'a text' if isinstance(context, str) else found(context)}")
        ]
    schema = plan.input_schema or {}
    return [
        SchemaMismatch(mismatch.path, without_secrets(mismatch.message, schema, context))
        for mismatch in check_input(plan, context)
    ]


def as_dict(context: Any) -> Any:
    """Return a mapping as a dict; any other value is returned unchanged, to be refused later."""
    return dict(context) if isinstance(context, Mapping) else context


def require_fit(plan: Plan, context: Mapping[str, Any]) -> None:
    """Raise `InputInvalid` with every problem of the input."""
    if problems := input_problems(plan, context):
        lines = "\n".join(f"  {problem.path}: {problem.message}" for problem in problems)
        raise InputInvalid(
            f"the input does not fit the template {plan.namespace}/{plan.name}:\n{lines}", problems=problems
        )


def check_priority(value: Any, default: int = 0) -> int:
    """Return the priority of a task as a number, or the default for None. Raises `UsageError` for another value."""
    if value is None:
        return default
    if (priority := parse_priority(value)) is not None:
        return priority
    hint = did_you_mean(value, NAMED_PRIORITIES) if isinstance(value, str) else None
    raise UsageError(
        f"priority: {PRIORITY_EXPECTED}; found {value!r:.80}",
        hint=hint or "without one the task has that of its template, usually normal",
    )


def trace_item(request: Submission) -> dict[str, Any]:
    """Return the trace of a task as the engine takes it. Raises `UsageError` if it is malformed."""
    try:
        trace = checked(request.traceparent, request.tracestate)
    except ValueError as error:
        raise UsageError(str(error), hint="omit it if the task belongs to no trace") from None
    return {"trace": trace.headers()} if trace else {}


def option_item(request: Submission, plan: Plan, limit_bytes: int) -> dict[str, Any]:
    """Return the options of a task of the plan as the engine takes them, except its trace and its key.

    Indexed texts are limited to `MOST_INDEXED_BYTES`, the reason to `limit_bytes`. None counts as omitted, and the
    database converts a number to text. Raises `UsageError` for a value of another type, `NotStorable` for a text that
    cannot be stored.
    """
    return {
        "priority": check_priority(request.priority, plan.priority),
        "correlation": _uuid_or_none(request.correlation_id, "correlation_id"),
        "parent_correlation": _uuid_or_none(request.parent_correlation_id, "parent_correlation_id"),
        "initiator": _text_or_none(request.initiator, "initiator"),
        "source_system": _text_or_none(request.source_system, "source_system"),
        "reason": _text_or_none(request.reason, "reason", limit_bytes),
        "tags": _tags(request.tags),
    }


def check_key(value: Any) -> str | None:
    """Return the idempotency key, or None if there is none. Raises `UsageError` if it is not a string."""
    if value is None or isinstance(value, str):
        return value
    hint = "pass a text that identifies this submission, or omit it"
    raise mistake("idempotency_key", "a text", value, hint)


def callback_item(value: Any) -> dict[str, str]:
    """Return the URL to which the end of a task is posted, as the engine takes it; {} without one.

    Raises `UsageError`. The addresses of its host are checked when it is posted to.
    """
    if value is None:
        return {}
    hint = "write https://host/path, without user, password and fragment"
    try:
        parts = urlsplit(value) if isinstance(value, str) and len(value) <= LONGEST_URL else None
        fine = parts is not None and parts.scheme in ("https", "http") and bool(parts.hostname)
    except ValueError:
        fine = False
    if not fine or parts is None or not value.isprintable() or " " in value:
        raise mistake("callback_url", f"a URL of at most {LONGEST_URL} characters", value, hint)
    if parts.username or parts.password or parts.fragment:
        raise UsageError("callback_url: expected a URL without user, password and fragment", hint=hint)
    return {"callback": value}


def unposted() -> UsageError:
    """Return the error for a callback URL to which no process would post."""
    return UsageError(
        "callback_url: no process posts to callback URLs",
        hint="start a worker, orchestrator or server with the plugin `webhooks` and its `callback_secrets`"
        " (docs/submissions.md); without them, read the end of the task with wait or watch",
    )


def template_gone(plan: Plan) -> TemplateError:
    """Return the error for a template that the database lost between its registration and the submission."""
    return TemplateError(
        f"template {plan.namespace}/{plan.name} version {plan.version} was registered a moment ago and is "
        f"gone: the database was recreated or restored",
        hint="submit again when that is done; no task was created",
    )


def uuid_text(value: Any, name: str) -> str:
    """Return a UUID, given as text or object, in canonical form. Raises `UsageError`; `name` names the value."""
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
    """Return a storable text, or a number, which the database converts to text."""
    if not isinstance(value, str):
        if isinstance(value, (int, float)) and -_NUMBERS_BELOW < value < _NUMBERS_BELOW:
            return value
        raise mistake(name, "a text", value, "convert it with str()")
    if problem := text_problem(value):
        raise NotStorable.at(name, problem, hint="take it out")
    if len(value) * 4 > limit_bytes and (size := len(value.encode())) > limit_bytes:
        reason = f"{size:,} bytes are more than the {limit_bytes:,} allowed"
        raise NotStorable.at(name, reason, too_large=True, hint="shorten it; put long values into the input")
    return value


def mistake(name: str, expected: str, value: Any, hint: str | None = None) -> UsageError:
    """Return the error for a value of an unexpected type."""
    return UsageError(f"{name}: expected {expected}, found {value!r:.80}", hint=hint)


def _uuid_or_none(value: Any, name: str) -> str | None:
    return None if value is None else uuid_text(value, name)


def _text_or_none(value: Any, name: str, limit_bytes: int = MOST_INDEXED_BYTES) -> str | float | None:
    return None if value is None else _text(value, name, limit_bytes)
