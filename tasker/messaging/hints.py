"""The message that tells a worker of a step: ids only, because the row in the database is the truth."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from tasker.contracts.dataclasses import dataclass
from tasker.errors import MessagingError


class PoisonMessage(MessagingError):
    """The payload is no hint; `reason` says why. Move it aside, it will never become one."""

    retryable: bool = False
    error_type = "poison_message"

    def __init__(self, reason: str, payload: bytes) -> None:
        super().__init__(f"a message is no hint to a step: {reason}")
        self.reason = reason
        self.payload = payload


@dataclass(frozen=True, slots=True)
class StepHint:
    """A step that waits for a worker."""

    step_uuid: UUID
    task_uuid: UUID

    def encode(self) -> bytes:
        """The payload: JSON with `step_uuid` and `task_uuid`."""
        return json.dumps({"step_uuid": str(self.step_uuid), "task_uuid": str(self.task_uuid)}).encode()

    @classmethod
    def decode(cls, payload: bytes) -> StepHint:
        """The hint in a payload; further keys are ignored. Raises `PoisonMessage`."""
        try:
            message = json.loads(payload)
        except (ValueError, RecursionError) as error:
            raise PoisonMessage(f"not JSON: {error}", payload) from None
        if not isinstance(message, dict):
            raise PoisonMessage(f"expected a JSON object, found {type(message).__name__}", payload)
        return cls(_uuid(message, "step_uuid", payload), _uuid(message, "task_uuid", payload))

    @classmethod
    def from_send(cls, entry: Mapping[str, Any]) -> StepHint:
        """The hint for one entry of the `send` list that the engine's functions answer."""
        return cls(UUID(entry["step"]), UUID(entry["task"]))


def _uuid(message: Mapping[str, Any], key: str, payload: bytes) -> UUID:
    value = message.get(key)
    try:
        return UUID(value) if isinstance(value, str) else _refuse(key, value, payload)
    except ValueError:
        return _refuse(key, value, payload)


def _refuse(key: str, value: object, payload: bytes) -> UUID:
    raise PoisonMessage(f"{key!r} should be a UUID, found {value!r:.80}", payload)
