"""What crosses the border between a worker and its child processes: frames of JSON, never pickles."""

from __future__ import annotations

import json
import struct
import sys
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from tasker.contracts.execution import Claim, Failure
from tasker.contracts.plan import Plan
from tasker.execution.attempt.cancel import CancelFlag
from tasker.execution.attempt.values import Attempt, Checkpoint, Ending, Success
from tasker.registry.invocation import ResolvedHandler

HEADER = struct.Struct("!I")
"""In front of every frame: its length in bytes."""


def frame(message: Mapping[str, Any]) -> bytes:
    """One message, ready to send."""
    body = json.dumps(message, separators=(",", ":")).encode()
    return HEADER.pack(len(body)) + body


def request(attempt: Attempt, handler: ResolvedHandler) -> dict[str, Any]:
    """What a child needs to run the attempt: where the handler lies, and everything of its context."""
    return {
        "source": asdict(handler.source),
        "kind": handler.kind,
        "name": handler.name,
        "sys_path": sys.path,
        "claim": asdict(attempt.claim),
        "plan": replace(attempt.plan, steps=(attempt.step,)).to_json(),
        "task_context": attempt.task_context,
        "dependency_results": attempt.dependency_results,
        "result_limit_bytes": attempt.result_limit_bytes,
    }


def attempt_from(message: Mapping[str, Any], flag: CancelFlag) -> Attempt:
    """The attempt as the child sees it. Checkpoints are saved by the parent."""
    plan = Plan.from_json(message["plan"])
    return Attempt(
        claim=Claim(**message["claim"]),
        plan=plan,
        step=plan.steps[0],
        task_context=message["task_context"],
        dependency_results=message["dependency_results"],
        cancel=flag,
        save_checkpoint=_not_here,
        begin=_begun,
        result_limit_bytes=message["result_limit_bytes"],
    )


def answer(ending: Ending) -> dict[str, Any]:
    """What the handler came to, as a message. A result travels as the text that will be stored."""
    if isinstance(ending, Success):
        fields = {"text": ending.text, "large": ending.large, "metadata": ending.metadata}
        return {"type": "success", "fields": fields}
    return {"type": "failure" if isinstance(ending, Failure) else "checkpoint", "fields": asdict(ending)}


def ending_from(message: Mapping[str, Any]) -> Ending:
    """The value that `answer` was given."""
    fields = message["fields"]
    match message["type"]:
        case "success":
            return Success(json.loads(fields["text"]), **fields)
        case "failure":
            return Failure(**fields)
        case _:
            return Checkpoint(**fields)


async def _not_here(_: Checkpoint) -> None:
    raise NotImplementedError("a child process hands its checkpoints to its parent")


async def _begun() -> bool:
    """Its parent has called it."""
    return True
