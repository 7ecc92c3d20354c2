"""Request of a task by message: the message format, its encoding and decoding.

The request's identifier is the task's, so whoever asks knows the task before it exists, and a message that comes twice
asks for the same task.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from typing import Any
from uuid import UUID

from tasker.contracts.dataclasses import dataclass
from tasker.errors import UsageError
from tasker.services.submitting.fitting import check_priority, mistake, uuid_text
from tasker.services.submitting.starts import start_texts
from tasker.services.submitting.submission import Submission

KEYS = ("request_id", "namespace", "template", "version", "context", "options")
OPTIONS = {field.name: field.default for field in fields(Submission) if field.name != "context"}
_COUNTER_BITS = 0xFFFFFF
"""Last 24 bits of a task's id, which number its steps."""


@dataclass(frozen=True, slots=True)
class TaskRequestMessage:
    """Request to create one task of a registered template; `version` None is the most recently registered one."""

    task_uuid: str
    namespace: str
    template: str
    version: str | None
    request: Submission

    def message(self) -> dict[str, Any]:
        """Return the message as plain data, without options that have their defaults."""
        given = asdict(self.request)
        context = given.pop("context")
        given |= start_texts(given["run_at"], given["delay"], given["expires_in"])
        options = {name: value for name, value in given.items() if value != OPTIONS[name]}
        values = (self.task_uuid, self.namespace, self.template, self.version, context, options)
        return dict(zip(KEYS, values, strict=True))

    @classmethod
    def decode(cls, payload: bytes) -> TaskRequestMessage:
        """Parse a message. Raises `UsageError`, which names the problem; nothing is guessed."""
        message = _object(_parsed(payload), "the message")
        _known(message, KEYS, "key")
        version = message.get("version")
        return cls(
            _task_uuid(message.get("request_id")),
            _name(message.get("namespace"), "namespace"),
            _name(message.get("template"), "template"),
            None if version is None else _name(version, "version"),
            _request(_object(message.get("context", {}), "context"), _object(message.get("options", {}), "options")),
        )


def finalization_of(payload: bytes) -> str:
    """Return the task that a message asks to evaluate again. Raises `UsageError`."""
    return uuid_text(_object(_parsed(payload), "the message").get("task_uuid"), "task_uuid")


def _request(context: Mapping[str, Any], options: Mapping[str, Any]) -> Submission:
    _known(options, OPTIONS, "option")
    checked: dict[str, Any] = {}
    for name, value in options.items():
        check: Callable[[Any, str], Any] = _OPTION_CHECKS.get(name, _text)
        checked[name] = check(value, name)
    return Submission(context, **checked)


def _parsed(payload: bytes) -> Any:
    try:
        return json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the message is not JSON: {error}") from None


def _known(given: Mapping[str, Any], known: Any, kind: str) -> None:
    if unknown := sorted(set(given) - set(known)):
        raise UsageError(f"unknown {kind} {unknown[0]!r}; expected: {', '.join(known)}")


def _object(value: Any, name: str) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    raise mistake(name, "a JSON object", value)


def _text(value: Any, name: str) -> str:
    if isinstance(value, str) and value:
        return value
    raise mistake(name, "a non-empty text", value)


def _name(value: Any, name: str) -> str:
    if isinstance(value, str) and value and value.isprintable():
        return value
    raise mistake(name, "a name", value)


def _texts(value: Any, name: str) -> list[str]:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return value
    raise mistake(name, "a list of texts", value)


def _task_uuid(value: Any) -> str:
    """Accept any UUID; version 7 keeps tasks ordered by time. The last 24 bits are dropped."""
    return str(UUID(int=UUID(uuid_text(value, "request_id")).int & ~_COUNTER_BITS))


_OPTION_CHECKS: Mapping[str, Callable[[Any, str], Any]] = {
    "priority": lambda value, _: check_priority(value),
    "tags": _texts,
    "correlation_id": uuid_text,
    "parent_correlation_id": uuid_text,
}
