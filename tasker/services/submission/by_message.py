"""Requests for tasks through the broker.

The request's identifier is the task's, so the client knows the task before it exists, and a message that comes twice
asks for the same task.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from typing import Any, Unpack
from uuid import UUID

from tasker.dataclasses import dataclass
from tasker.errors import UsageError
from tasker.json_values import encode
from tasker.messaging.service import MessagingService
from tasker.services.submission.check import as_dict, check_priority, mistake, uuid_text
from tasker.services.submission.starts import TIMES, start_texts
from tasker.services.submission.submit import Submission, SubmissionOptions
from tasker.services.tasks.read import checked
from tasker.services.workflows.targets import registered_name

KEYS = ("request_id", "namespace", "template", "version", "context", "options")
OPTIONS = {field.name: field.default for field in fields(Submission) if field.name not in ("context", "key", "parent")}
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
        arguments = asdict(self.request)
        context = arguments.pop("context")
        if arguments.pop("key") is not None:
            raise UsageError("key: a request by message is not tied to a step", hint="pass a task_uuid made from it")
        del arguments["parent"]
        arguments |= start_texts(**{name: arguments[name] for name in TIMES})
        options = {name: value for name, value in arguments.items() if value != OPTIONS[name]}
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
    "priority": lambda value, _: None if value is None else check_priority(value),
    "tags": _texts,
    "correlation_id": uuid_text,
    "parent_correlation_id": uuid_text,
}


class TaskRequestSender:
    """Sender of task requests to orchestrators.

    Contexts are limited to `limit_bytes`; `new_task_uuid` creates task ids.
    """

    def __init__(self, messaging: MessagingService, new_task_uuid: Callable[[], str], limit_bytes: int) -> None:
        self._messaging, self._new_task_uuid, self._limit = messaging, new_task_uuid, limit_bytes
        self._prepared = False

    async def request(
        self,
        target: str,
        context: Mapping[str, Any] | None = None,
        *,
        task_uuid: str | None = None,
        **options: Unpack[SubmissionOptions],
    ) -> str:
        """Request a task of the registered template `namespace/name[:version]`, and return the id that it will have.

        `options` are those of `Submission`. If the broker's answer was lost, request again with the same `task_uuid`:
        only one task is created. Requests that an orchestrator refuses (an unknown template, an invalid context) are
        listed by `tasker task refused`. Raises `UsageError`, `NotStorable`, `MessagingError`.
        """
        request = Submission({} if context is None else as_dict(context), **options)
        return await self.ask(registered_name(target), request, task_uuid)

    async def ask(
        self, template: tuple[str, str, str | None], request: Submission, task_uuid: str | None = None
    ) -> str:
        """Request a task of a template given as namespace, name and version; see `request`."""
        task = checked(task_uuid) if task_uuid else self._new_task_uuid()
        message = TaskRequestMessage(task, *template, request).message()
        text = encode(message, limit_bytes=self._limit).text
        decoded = TaskRequestMessage.decode(text.encode())  # raises here the errors of the receiving side
        await self.prepare()
        await self._messaging.send_task_request(message)
        return decoded.task_uuid

    async def prepare(self) -> None:
        """Create the queues, once. Raises `MessagingError`, and `UsageError` if no orchestrator can reach them."""
        if self._prepared:
            return
        if not self._messaging.backend.capabilities.shared:
            name = self._messaging.provider_name()
            raise UsageError(
                f"the {name} backend lives inside one process; no orchestrator would see the request",
                hint="submit with App.submit, or choose another backend",
            )
        await self._messaging.ensure_orchestration_queues()
        self._prepared = True

    async def finalize(self, task_uuid: str) -> None:
        """Ask for a task to be evaluated again, from its rows; nothing happens to one that has ended."""
        await self.prepare()
        await self._messaging.send_task_finalization({"task_uuid": checked(task_uuid)})
