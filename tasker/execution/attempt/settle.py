"""Conversion of a return value or exception to an outcome that can be stored, with values redacted."""

from __future__ import annotations

import math
import signal
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from tasker.errors import HandlerMismatch, NotStorable
from tasker.execution.attempt.attempt import Attempt, Checkpoint, Ending, Snooze
from tasker.handlers.again import AgainIn, AgainWhen
from tasker.handlers.claims import Failure, Success, Suspension
from tasker.handlers.normalize import failure_from_exception, failure_from_result, to_result
from tasker.handlers.outcome_forms import BATCH_KEY, DECISION_KEY
from tasker.handlers.step_handler import CheckpointYield
from tasker.json_values import VALUE_LIMIT_BYTES, WARN_BYTES, as_stored, encode
from tasker.known_secrets import KNOWN
from tasker.redaction import Redactor, has_sensitive
from tasker.template.durations import duration_text
from tasker.template.plan import StepPlan
from tasker.template.step_types import Creates, StepType

MOST_SECRETS = 10_000
"""Number of sensitive values above which texts are withheld as a whole: replacing each would take too long."""


class OutcomeRedactor:
    """Redactor of the output of one attempt. Collects the sensitive values at the first output only."""

    __slots__ = ("_attempt", "_veil")

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._veil: Redactor | None = None

    def over(self, value: Any) -> Any:
        """Return a text or plain data redacted."""
        attempt, value = self._attempt, KNOWN.redact(value)
        if not has_sensitive(attempt.plan):
            return value
        if self._veil is None:
            self._veil = Redactor(attempt.plan, attempt.task_context, attempt.dependency_results, MOST_SECRETS)
        return self._veil.redact(value)

    def failure(self, failure: Failure) -> Failure:
        """Return the failure with its message, metadata, error type and error code redacted."""
        if not has_sensitive(self._attempt.plan):
            return failure
        fields = {
            "message": failure.message,
            "metadata": failure.metadata,
            "error_type": failure.error_type,
            "error_code": failure.error_code,
        }
        return replace(failure, **self.over(fields))


MAX_MESSAGE = 10_000
"""Maximum length of a stored message in characters."""


def make_storable(failure: Failure) -> Failure:
    """Return the failure with every text and every metadata value in a form that can be stored.

    The metadata key `left_out` names the values that could not be stored.
    """
    failure = KNOWN.redact(failure) if KNOWN else failure
    return replace(
        failure,
        message=_shortened(_text(failure.message)),
        error_type=_text(failure.error_type),
        error_code=None if failure.error_code is None else _text(str(failure.error_code)),
        metadata=_storable_metadata(failure.metadata),
    )


def _storable_metadata(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        # a copy, since the handler's author may still change the original
        return dict(as_stored(encode(metadata, limit_bytes=WARN_BYTES)))
    except NotStorable:
        return _storable_entries(metadata)


def _storable_entries(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Keep the keys that can be stored: a traceback is worth keeping even if a value beside it is not JSON."""
    stored: dict[str, Any] = {}
    left_out: list[str] = []
    for key, value in metadata.items():
        try:
            stored |= as_stored(encode({key: value}, limit_bytes=WARN_BYTES // 4))
        except NotStorable as problem:
            left_out.append(_shortened(_text(str(problem))))
    return stored | {"left_out": left_out}


def _text(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\0")


def _shortened(text: str) -> str:
    cut = len(text) - MAX_MESSAGE
    return text if cut <= 0 else f"{text[:MAX_MESSAGE]}... ({cut} more characters)"


CRASH = "handler_crash"
NOT_IMPORTABLE = "handler_not_importable"
ROLE_MISMATCH = HandlerMismatch.error_type
TIMED_OUT = "handler_timeout"
_OUTCOMES = tuple(
    (key, kind)
    for key, creates in ((DECISION_KEY, Creates.BRANCHES), (BATCH_KEY, Creates.BATCHES))
    for kind in StepType
    if kind.creates is creates
)
TOLD_TO_STOP = (f"exited with status {128 + signal.SIGTERM}", "was killed by SIGTERM")


def settle_return_value(
    value: Any,
    step: StepPlan,
    handler: str,
    limit_bytes: int = VALUE_LIMIT_BYTES,
    passed_on: Mapping[str, Any] = MappingProxyType({}),
) -> Success | Failure:
    """Convert the handler's return value to a success that can be stored and fits the step, or to a failure.

    `passed_on` are the results of the step's dependencies.
    """
    result = to_result(value, handler)
    if not result.is_success:
        return make_storable(failure_from_result(result, handler))
    produced = result.result or {}
    try:
        encoded = encode(produced, limit_bytes=limit_bytes)
        metadata = _metadata(result.metadata) if result.metadata else {}
    except NotStorable as problem:
        return _not_storable("result", problem, handler)
    if failure := unread_outcome(produced, passed_on, step, handler):
        return failure
    if step.result_schema is not None and (failure := _against_schema(produced, step, handler)):
        return failure
    return Success(encoded, metadata)


def yielded(signal: CheckpointYield, handler: str) -> Checkpoint | Failure:
    """Return the position that the handler yielded in its stored form, or a failure when it cannot be stored."""
    position = {
        "cursor": signal.cursor,
        "items_processed": signal.items_processed,
        "accumulated_results": signal.accumulated_results,
    }
    try:
        return Checkpoint(**as_stored(encode(position)))
    except NotStorable as problem:
        return _not_storable("checkpoint", problem, handler)


def snoozed(signal: AgainIn, handler: str) -> Snooze | Failure:
    """Return the request to be called again in its stored form, or a failure when its state cannot be stored."""
    try:
        state = None if signal.state is None else as_stored(encode(signal.state))
    except NotStorable as problem:
        return _not_storable("state", problem, handler)
    return Snooze(math.ceil(signal.seconds * 1000), KNOWN.redact(_text(signal.reason)), signal.limit, state)


def suspended(signal: AgainWhen, handler: str) -> Suspension | Failure:
    """Return the wait of a handler in its stored form, or a failure when its state cannot be stored."""
    timeout = None if signal.seconds is None else math.ceil(signal.seconds * 1000)
    try:
        kept = as_stored(encode({"key": signal.key, "state": signal.state, "schema": signal.schema}))
    except NotStorable as problem:
        return _not_storable("state", problem, handler)
    return Suspension(signal.event, timeout_ms=timeout, on_timeout=signal.on_timeout, **kept)


def result_of_stopped(error: BaseException, handler: str) -> Checkpoint | Snooze | Suspension | Failure:
    """Convert an exception that left the handler: to the position it yields, to a call later, or to a failure.

    A yield from a task of an `asyncio.TaskGroup` arrives in a group, alone if no other task has failed.
    """
    inner = error
    while isinstance(inner, BaseExceptionGroup) and len(inner.exceptions) == 1:
        inner = inner.exceptions[0]
    try:
        if isinstance(inner, AgainIn):
            return snoozed(inner, handler)
        if isinstance(inner, AgainWhen):
            return suspended(inner, handler)
        if isinstance(inner, CheckpointYield):
            return yielded(inner, handler)
    except Exception as defect:  # it was raised with other values than `again_in` allows
        error = defect
    return settle_exception(error, handler)


def settle_exception(error: BaseException, handler: str) -> Failure:
    """Convert an exception of the handler to a failure. Exceptions that would end the process are treated the same."""
    try:
        return make_storable(_from_exception(error, handler))
    except BaseException as defect:  # its text or one of its fields raises: that must not lose the step or the thread
        kind = type(error).__name__
        message = f"{handler} raised {kind}, which cannot be shown: asking it raised {type(defect).__name__}"
        return Failure(message, "handler_error", True, metadata={"exception_type": kind}, handler=handler)


def too_near(snooze: Snooze, left: float, handler: str) -> Failure:
    """Return the failure of a handler that would be called again only after the deadline of its task."""
    again = f"{handler} asked to be called again in {duration_text(snooze.delay_ms / 1000)}"
    message = f"{again}, and {duration_text(max(0.0, left))} are left until the deadline of the task"
    return Failure(message, "deadline_too_near", False, handler=handler)


def timed_out(limit: float, handler: str, remark: str = "") -> Failure:
    """Return the failure of an attempt that took longer than `limit` seconds."""
    message = f"{handler} did not finish within its timeout of {limit:g} seconds{remark}"
    return Failure(message, TIMED_OUT, True, metadata={"timeout_seconds": limit}, handler=handler)


def interrupted(attempt: Attempt) -> Failure:
    """Return the failure of a handler that its worker stopped, of a step that is not repeated."""
    handler = attempt.step.handler.callable
    return Failure(f"the worker stopped while {handler} ran", "worker_lost", False, handler=handler)


def past_deadline(handler: str, after: float | None = None) -> Failure:
    """Return the failure of an attempt that the deadline of its task ended `after` seconds; None: before it began."""
    what = "was not called" if after is None else f"did not finish in the {after:.3g} seconds that were left"
    return Failure(
        f"{handler} {what}: the deadline of the task has passed", "deadline_exceeded", False, handler=handler
    )


def thread_leaked(limit: float, handler: str) -> Failure:
    """Return the failure of an attempt that took longer than `limit` seconds in a thread."""
    remark = "; its thread cannot be stopped and goes on, what it returns will be discarded"
    return timed_out(limit, handler, remark)


def crashed(how: str, step: StepPlan, handler: str) -> Failure:
    """Return the failure of a handler whose child process ended; `on_worker_lost: fail` makes it permanent."""
    message = f"the child process of {handler} {how} before the handler had finished"
    retryable = step.on_worker_lost != "fail"
    return Failure(message, CRASH, retryable, metadata={"process": how}, handler=handler)


def over_memory(limit: int, peak: int, handler: str) -> Failure:
    """Return the failure of a handler whose child process used more than `limit` MB."""
    message = f"{handler} held {peak} MB of memory, its memory_mb is {limit}; its process was ended"
    return Failure(message, "memory_exceeded", True, metadata={"memory_mb": limit, "peak_mb": peak}, handler=handler)


def mode_mismatch(handler: str) -> Failure:
    """Return the failure of a plain function that was to run on the event loop, which it would block."""
    message = f"the step says `execution: {{mode: async}}` and {handler} is a plain function"
    advice = "declare it with `async def`, or remove the mode to run it in a thread"
    return Failure(f"{message}: {advice}", "execution_mode_mismatch", False, handler=handler)


def role_mismatch(handler: str, problem: str, remedy: str) -> Failure:
    """Return the failure of a handler of the wrong kind for the step's type; the handler has not run."""
    return make_storable(Failure(f"{handler} {problem}: {remedy}", ROLE_MISMATCH, False, handler=handler))


def unread_outcome(
    result: Mapping[str, Any], passed_on: Mapping[str, Any], step: StepPlan, handler: str
) -> Failure | None:
    """Return a failure when the result has a decision or batches but the step's type reads none.

    Without it all steps below would run. Returns None for an outcome copied from `passed_on`, the results of the
    dependencies.
    """
    for key, kind in _OUTCOMES:
        outcome = result.get(key)
        if outcome is None or step.type.creates is kind.creates:
            continue
        if outcome not in [above.get(key) for above in passed_on.values() if isinstance(above, Mapping)]:
            message = (
                f"{handler} returned a '{key}', and `{step.name}` is a step of type `{step.type}`, which reads none"
            )
            remedy = f"write `type: {kind}` for `{step.name}` in the template, or return a result without it"
            return make_storable(Failure(f"{message}: {remedy}", ROLE_MISMATCH, False, handler=handler))
    return None


def not_in_process(handler: str, why: str, remedy: str = "move it to a module that can be imported") -> Failure:
    """Return the failure of a handler whose code or content is not available in a child process."""
    message = f"{handler} cannot run in a process of its own: {why}; {remedy}"
    return make_storable(Failure(message, NOT_IMPORTABLE, False, handler=handler))


def has_not_run(ending: Ending) -> bool:
    """Return True when the child could not load the handler's code."""
    return isinstance(ending, Failure) and ending.error_type == NOT_IMPORTABLE


def isolate_failure(ending: Ending) -> Ending:
    """Make a crash of an isolated step permanent, since it has ended this process too; return other outcomes unchanged.

    A process that was ended by SIGTERM is exempt: a supervisor sends it to every process of a service.
    """
    if not isinstance(ending, Failure) or ending.error_type != CRASH or ending.metadata["process"] in TOLD_TO_STOP:
        return ending
    message = (
        f"{ending.message}. Two workers were lost while they ran this step, and the process that it was then given for"
        " itself has ended as well, so it is not tried again: fix the handler and run `tasker task step reset`, or"
        " say `execution: {mode: process}` in the template, which keeps it apart from the start"
    )
    return replace(ending, message=message, error_type="killed_its_workers", retryable=False)


def _from_exception(error: BaseException, handler: str) -> Failure:
    if isinstance(error, Exception):
        return failure_from_exception(error, handler=handler)
    message = f"{handler} raised {error!r}: a handler ends with a result or an exception, it does not end the worker"
    metadata = {"exception_type": type(error).__name__}
    return Failure(message, "handler_error", True, metadata=metadata, handler=handler)


def _metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    """Return a copy, since the handler's author may still change the original."""
    try:
        return dict(as_stored(encode(metadata)))
    except NotStorable as problem:
        raise NotStorable.at(f"metadata {problem.path}", problem.reason) from None


def _against_schema(value: Any, step: StepPlan, handler: str) -> Failure | None:
    from tasker.redaction import without_secrets
    from tasker.template.schema_check import SchemaMismatch, check_result

    problems = check_result(step.result_schema or {}, value)
    if not problems:
        return None
    schema = step.result_schema or {}
    mismatches = [SchemaMismatch(problem.path, without_secrets(problem.message, schema, value)) for problem in problems]
    message = f"the result of {handler} does not fit result_schema: {'; '.join(map(str, mismatches))}"
    metadata = {"problems": [problem.to_dict() for problem in mismatches]}
    return make_storable(Failure(message, "result_schema_violation", False, metadata=metadata, handler=handler))


def _not_storable(what: str, problem: NotStorable, handler: str) -> Failure:
    hint = f"; {problem.hint}" if problem.hint else ""
    message = f"the {what} of {handler} cannot be stored: {problem}{hint}"
    failure = Failure(message, problem.error_type, False, metadata={"path": problem.path}, handler=handler)
    return make_storable(failure)
