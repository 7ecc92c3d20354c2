"""Wake-ups for workers, pointers to parked results, poison messages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from tasker.dataclasses import dataclass
from tasker.errors import MessagingError


class PoisonMessage(MessagingError):
    """Error raised if the payload is not a wake-up message, for `reason`. Quarantine it; retrying cannot succeed."""

    retryable: bool = False
    error_type = "poison_message"

    def __init__(self, reason: str, payload: bytes) -> None:
        super().__init__(f"a message is no hint to a step: {reason}")
        self.reason = reason
        self.payload = payload


@dataclass(frozen=True, slots=True)
class StepHint:
    """Wake-up message for a ready step."""

    step_uuid: UUID
    task_uuid: UUID

    def encode(self) -> bytes:
        """Return the payload: JSON with `step_uuid` and `task_uuid`."""
        return json.dumps({"step_uuid": str(self.step_uuid), "task_uuid": str(self.task_uuid)}).encode()

    @classmethod
    def decode(cls, payload: bytes) -> StepHint:
        """Decode a payload; other keys are ignored. Raises `PoisonMessage`."""
        try:
            message = json.loads(payload)
        except (ValueError, RecursionError) as error:
            raise PoisonMessage(f"not JSON: {error}", payload) from None
        if not isinstance(message, dict):
            raise PoisonMessage(f"expected a JSON object, found {type(message).__name__}", payload)
        return cls(_uuid(message, "step_uuid", payload), _uuid(message, "task_uuid", payload))

    @classmethod
    def from_send(cls, entry: Mapping[str, Any]) -> StepHint:
        """Return the message for one entry of the `send` list returned by the engine's functions."""
        return cls(UUID(entry["step"]), UUID(entry["task"]))


def _uuid(message: Mapping[str, Any], key: str, payload: bytes) -> UUID:
    value = message.get(key)
    try:
        return UUID(value) if isinstance(value, str) else _refuse(key, value, payload)
    except ValueError:
        return _refuse(key, value, payload)


def _refuse(key: str, value: object, payload: bytes) -> UUID:
    raise PoisonMessage(f"{key!r} should be a UUID, found {value!r:.80}", payload)


POINTED_AT = 32
"""Maximum number of results per message, so that PostgreSQL does not store its text out of line."""


def pointers_to(results: Sequence[Mapping[str, Any]], together: int = POINTED_AT) -> Iterator[bytes]:
    """Yield payloads that point to these results in order, each to up to `together` of them.

    A payload for a single result has its step, task and token; one for several has only the steps, `{"steps": [...]}`.
    """
    for start in range(0, len(results), together):
        part = results[start : start + together]
        message = part[0] if len(part) == 1 else {"steps": [result["step"] for result in part]}
        yield json.dumps(message, allow_nan=False).encode()


def pointed_at(payload: bytes) -> list[str]:
    """Return the steps to whose results a payload points. Raises `ValueError` with the reason if it is invalid."""
    try:
        message = json.loads(payload)
        steps = message["steps"] if "steps" in message else [message["step"]]
        step_ids = [str(UUID(step)) for step in steps]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"the message points to no parked step: {error!r:.200}") from error
    if not step_ids:
        raise ValueError("the message points to no parked step: its list is empty")
    return step_ids
