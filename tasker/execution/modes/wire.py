"""Messages between a worker and its child processes: frames of JSON, never pickles.

Both frames of a call carry the same `CallId`: an answer is accepted only for the call that waits for it.
"""

from __future__ import annotations

import json
import struct
import sys
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from tasker.execution.attempt.attempt import (
    Attempt,
    AttemptCancelFlag,
    Checkpoint,
    Ending,
    Snooze,
    with_events,
)
from tasker.execution.fast.shared_values import SharedValueReceiver, SharedValueSender
from tasker.handlers.claims import Claim, Failure, HandlerEvent, Success, Suspension
from tasker.handlers.registry.invocation import ResolvedHandler
from tasker.json_values import JsonText
from tasker.logging.current_step import LogLine, ProgressReport, Reporter
from tasker.logging.trace_context import TraceContext
from tasker.template.plan import Plan

if TYPE_CHECKING:
    from tasker.execution.modes.asking import ParentCalls
    from tasker.resources.registry import AttemptResources, ResourceRegistry

MARK = b"TSKR"
HEADER = struct.Struct("!4sI")
"""Header of every frame: the mark, and the length of the body in bytes."""

LONGEST_ANSWER = 256 * 1024 * 1024
"""Largest answer in bytes. The largest result that the configuration allows (64 MiB) fits with its metadata, even if
JSON escapes double its length."""

REPORTS: Mapping[str, type[LogLine] | type[ProgressReport]] = {"line": LogLine, "progress": ProgressReport}
"""Classes of a handler's output, by the type of the message."""

STOP: Mapping[str, Any] = {"type": "stop"}
"""Message that tells a child to stop, sent in place of a request and in addition to the signal."""

ASK, ANSWER = "ask", "answer"
"""Types of the messages by which a handler in a child asks its parent for something, and of what the parent answers."""

CallId: TypeAlias = list[str | int]
"""Step, token and number of the call: a step is called again under the same token after each checkpoint."""


class NotAFrame(ValueError):
    """Invalid data on the connection: other code has written to it."""


def frame(message: Mapping[str, Any]) -> bytes:
    """Encode one message as a frame."""
    text = json.dumps(message, separators=(",", ":"), ensure_ascii=False)
    body = text.encode(errors="surrogatepass")  # `json.loads` decodes the same way
    return HEADER.pack(MARK, len(body)) + body


def length_of_answer(header: bytes) -> int:
    """Return the length of the body in bytes. Raises `NotAFrame`."""
    mark, length = HEADER.unpack(header)
    if mark != MARK or length > LONGEST_ANSWER:
        raise NotAFrame(header)
    return int(length)


def parsed(body: bytes) -> tuple[CallId, dict[str, Any]]:
    """Return the call that an answer belongs to, and the answer. Raises `NotAFrame`."""
    try:
        message: dict[str, Any] = json.loads(body)
        return message["call"], message
    except (ValueError, KeyError, TypeError) as error:
        raise NotAFrame(body[:100]) from error


def importable() -> list[str]:
    """Return the entries of `sys.path` that the import system uses: it may contain objects that are not strings."""
    path: list[object] = [*sys.path]
    return [entry for entry in path if isinstance(entry, str)]


def call_id(attempt: Attempt, number: int) -> CallId:
    return [attempt.claim.step_uuid, attempt.claim.token, number]


def request(call: CallId, attempt: Attempt, handler: ResolvedHandler, sent: SharedValueSender) -> dict[str, Any]:
    """Build the request that runs the attempt in a child: the handler's location and its context.

    `sent` replaces values that the child has already.
    """
    return {
        "call": call,
        "source": _fields(handler.source),
        "kind": handler.kind,
        "name": handler.name,
        "sys_path": importable(),
        "claim": _fields(replace(attempt.claim, trace=attempt.claim.propagated_trace, trace_of=None)),
        "plan": replace(attempt.plan, steps=(attempt.step,)).to_json(),
        **sent.fields(
            attempt.claim.task_uuid, task_context=attempt.task_context, dependency_results=attempt.dependency_results
        ),
        "result_limit_bytes": attempt.result_limit_bytes,
        "inputs": attempt.inputs,
        "resources": None if attempt.resources is None else attempt.resources.tables.portable(),
        "kept_log_level": None if attempt.reporter is None else attempt.reporter.level,
    }


def attempt_from(
    message: Mapping[str, Any],
    flag: AttemptCancelFlag,
    reporter: Reporter,
    received: SharedValueReceiver,
    calls: ParentCalls,
) -> Attempt:
    """Build the attempt in the child. The parent saves its checkpoints and receives the output of `reporter`."""
    plan = Plan.from_json(message["plan"])
    context, results = received.read(message["task_context"]), received.read(message["dependency_results"])
    received.drop(message["drop"])
    return Attempt(
        claim=_claim(message["claim"]),
        plan=plan,
        step=plan.steps[0],
        task_context=context,
        dependency_results=results,
        cancel=flag,
        writes=InTheParent(),
        result_limit_bytes=message["result_limit_bytes"],
        reporter=reporter,
        inputs=message["inputs"],
        resources=_attempt_resources(message["resources"]),
        calls=lambda _: calls,
        starter=calls,
    )


_registries: dict[str, ResourceRegistry] = {}
"""Resources of this child process, by their tables."""


def _attempt_resources(tables: Mapping[str, Any] | None) -> AttemptResources | None:
    """Return the resources for an attempt: a child makes its own, from the references that its parent has."""
    if tables is None:
        return None
    from tasker.resources.registry import ResourceRegistry  # needed for workers with resources only
    from tasker.resources.tables import ResourceTables

    key = json.dumps(tables, sort_keys=True)
    if key not in _registries:
        _registries[key] = ResourceRegistry(ResourceTables(**tables))
    return _registries[key].for_attempt()


def close_resources() -> None:
    """Close what this child process has made."""
    for registry in _registries.values():
        registry.close()


def _claim(fields: Mapping[str, Any]) -> Claim:
    """Restore the claim; JSON turned its named tuple into a list."""
    trace = fields["trace"]
    return Claim(**{**fields, "trace": TraceContext(*trace) if trace else None})


def answer(call: CallId, ending: Ending) -> dict[str, Any]:
    """Encode the outcome of a call as a message. A result is sent as the text that will be stored."""
    if isinstance(ending, Success):
        kind, field_values = "success", {"text": ending.encoded.text, "metadata": ending.metadata}
    else:
        kinds = {Failure: "failure", Snooze: "snooze", Suspension: "suspension", Checkpoint: "checkpoint"}
        kind = kinds[type(ending)]
        field_values = {name: value for name, value in _fields(ending).items() if name != "events"}
    message = {"call": call, "type": kind, "fields": field_values}
    return message | ({"events": [event.to_json() for event in ending.events]} if ending.events else {})


def ending_from(message: Mapping[str, Any]) -> Ending:
    """Decode a message of `answer`."""
    events = [HandlerEvent.from_json(event) for event in message.get("events", ())]
    return with_events(_ending(message["type"], message["fields"]), tuple(events))


def _ending(kind: str, fields: Mapping[str, Any]) -> Ending:
    match kind:
        case "success":
            return Success(JsonText(fields["text"]), fields["metadata"])
        case "failure":
            return Failure(**fields)
        case "snooze":
            return Snooze(**fields)
        case "suspension":
            return Suspension(**fields)
        case _:
            return Checkpoint(**fields)


def parse_output(call: CallId, report: LogLine | ProgressReport) -> dict[str, Any]:
    """Encode a handler's output as a message. Fields that are not JSON become text."""
    kind = "line" if isinstance(report, LogLine) else "progress"
    return {"call": call, "type": kind, "fields": _fields(report)}


def report_from(message: Mapping[str, Any]) -> LogLine | ProgressReport | None:
    """Decode a message of `parse_output`; return None for an answer. Raises `NotAFrame`."""
    kind = REPORTS.get(message.get("type", ""))
    try:
        return None if kind is None else kind(**message["fields"])
    except (KeyError, TypeError) as error:
        raise NotAFrame(message) from error


def _fields(value: Any) -> dict[str, Any]:
    """Return the fields by name, uncopied: `asdict` would recreate dictionary subclasses, which may fail."""
    return {field.name: getattr(value, field.name) for field in fields(value)}


class InTheParent:
    """Writes of an attempt inside a child process, where the parent performs them."""

    async def begin(self, attempt: Attempt) -> bool:
        """Return True: the parent has recorded the start."""
        return True

    async def save(self, attempt: Attempt, position: Checkpoint) -> None:
        """Raise `NotImplementedError`: a child process hands its checkpoints to its parent."""
        raise NotImplementedError("a child process hands its checkpoints to its parent")

    async def lock(self, attempt: Attempt, action: str, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Raise `NotImplementedError`: a child process asks its parent (`ParentCalls`)."""
        raise NotImplementedError("a child process asks its parent for locks")

    async def children(self, attempt: Attempt, page: Mapping[str, Any]) -> Mapping[str, Any]:
        """Raise `NotImplementedError`: a child process asks its parent (`ParentCalls`)."""
        raise NotImplementedError("a child process asks its parent for child tasks")

    async def memo(self, attempt: Attempt, action: str, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Raise `NotImplementedError`: the parent has looked before it started the child."""
        raise NotImplementedError("the parent looks for stored results")
