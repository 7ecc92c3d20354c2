"""What the engine itself reports: templates, submission, state machines, storage, messaging."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from tasker.errors.base import TaskerError


class UsageError(TaskerError):
    """The command or the call was given something it cannot work with (exit code 2)."""

    retryable: bool = False
    error_type = "usage_error"


class TemplateNotFound(UsageError):
    """No template of that name is registered, or not in that version."""

    error_type = "template_not_found"


class TemplateError(TaskerError):
    """A template cannot be used; `diagnostics` holds every problem found, each with its place."""

    retryable: bool = False
    error_type = "template_error"

    def __init__(self, message: str, *, diagnostics: Sequence[Any] = (), **fields: Any) -> None:
        super().__init__(message, **fields)
        self.diagnostics = tuple(diagnostics)

    def details(self) -> Mapping[str, Any]:
        """The diagnostics as plain data where they know how, else as text."""
        return {"diagnostics": [_plain(item) for item in self.diagnostics] or None}


class PlanUnreadable(TaskerError):
    """A stored template that this version of Tasker does not understand: a newer one has written it."""

    retryable: bool = True
    error_type = "plan_unreadable"


class CycleDetected(TemplateError):
    """The dependencies form a cycle; `cycle` names its steps in order, the first repeated at the end."""

    error_type = "dependency_cycle"

    def __init__(self, message: str, *, cycle: Sequence[str] = (), **fields: Any) -> None:
        super().__init__(message, **fields)
        self.cycle = tuple(cycle)

    def details(self) -> Mapping[str, Any]:
        """The cycle as a list, beside the diagnostics."""
        return {**super().details(), "cycle": list(self.cycle) or None}


class InputInvalid(TaskerError):
    """The context of a task does not fit the template's `input_schema`; `problems` names each place."""

    retryable: bool = False
    error_type = "input_invalid"

    def __init__(self, message: str, *, problems: Sequence[Any] = (), **fields: Any) -> None:
        super().__init__(message, **fields)
        self.problems = list(problems)

    def details(self) -> Mapping[str, Any]:
        """The problems as plain data."""
        return {"problems": [_plain(item) for item in self.problems] or None}


class NotStorable(TaskerError):
    """A value that cannot be stored. `path` is the place (`$.rows[3].price`), `reason` what is wrong there.

    `error_type` is `not_storable`, or `result_too_large` when only the size is at fault.
    """

    retryable: bool = False
    error_type = "not_storable"

    def __init__(
        self, message: str, *, path: str = "$", reason: str = "", too_large: bool = False, **fields: Any
    ) -> None:
        super().__init__(message, **fields)
        self.path, self.reason = path, reason
        if too_large:
            self.error_type = "result_too_large"

    @classmethod
    def at(cls, path: str, reason: str, *, too_large: bool = False, hint: str | None = None) -> Self:
        """The error of that place, which begins its message."""
        return cls(f"{path}: {reason}", path=path, reason=reason, too_large=too_large, hint=hint)


class DuplicateTask(TaskerError):
    """A task of the same identity exists: `task_uuid`, its `state` and the number of its `steps` when it was found.

    All three stay out of the message and of `to_dict`, which may reach a stranger.
    """

    retryable: bool = False
    error_type = "duplicate_task"

    def __init__(
        self, message: str, *, task_uuid: str | None = None, state: str | None = None, steps: int = 0, **fields: Any
    ) -> None:
        super().__init__(message, **fields)
        self.task_uuid, self.state, self.steps = task_uuid, state, steps


class IdempotencyKeyReused(DuplicateTask):
    """The idempotency key names a task with another input; `problems` has the path of each difference."""

    error_type = "idempotency_key_reused"

    def __init__(self, message: str, *, problems: Sequence[Any] = (), **fields: Any) -> None:
        super().__init__(message, **fields)
        self.problems = list(problems)

    def details(self) -> Mapping[str, Any]:
        """The differences as plain data."""
        return {"problems": [_plain(item) for item in self.problems] or None}


class Overloaded(TaskerError):
    """New work is refused for now; `retry_after` says for how many seconds. Nothing was created."""

    error_type = "overloaded"


class TaskNotFound(TaskerError):
    """No task has that id."""

    retryable: bool = False
    error_type = "task_not_found"


class StepNotFound(TaskerError):
    """The task has no such step."""

    retryable: bool = False
    error_type = "step_not_found"


class DeadLetterNotFound(TaskerError):
    """There is no such entry among the dead letters."""

    retryable: bool = False
    error_type = "dead_letter_not_found"


class StateMachineError(TaskerError):
    """A state machine was asked for something it does not do."""

    retryable: bool = False
    error_type = "state_machine_error"


class IllegalTransition(StateMachineError):
    """The event is not legal in that state."""

    error_type = "illegal_transition"


class DatabaseError(TaskerError):
    """The database refused or failed a statement."""

    retryable: bool = True
    error_type = "database_error"


class DatabaseUnavailable(DatabaseError):
    """The database cannot be reached."""

    error_type = "database_unavailable"


class SessionRefused(DatabaseUnavailable):
    """The server answers, and refuses a new session. Nothing was sent."""


class TooManyConnections(SessionRefused):
    """The server, the database or the role has as many sessions as it may have. Nothing was sent: try again."""

    error_type = "too_many_connections"


class ConnectionLost(DatabaseUnavailable):
    """The connection ended during a statement: whether it was carried out is not known."""


class DatabaseBreakerOpen(DatabaseUnavailable):
    """The database kept failing and is not asked for now; `retry_after` says for how many seconds."""

    error_type = "database_breaker_open"


class PoolExhausted(DatabaseError):
    """No connection became free in time; `metadata` has the pool's sizes. Nothing was sent: try again."""

    error_type = "pool_exhausted"


class StatementTimeout(DatabaseError):
    """The database cancelled a statement that ran for too long; nothing of it was stored, unless it committed
    by itself in between."""

    error_type = "statement_timeout"


class LockTimeout(DatabaseError):
    """Another transaction kept what a statement needs for too long; nothing of it was stored."""

    error_type = "lock_timeout"


class SchemaOutdated(DatabaseError):
    """The schema in the database is not the one this version works with."""

    retryable: bool = False
    error_type = "schema_outdated"


class MessagingError(TaskerError):
    """A messaging backend refused or failed an operation."""

    retryable: bool = True
    error_type = "messaging_error"


class BackendUnavailable(MessagingError):
    """The messaging backend cannot be reached, or is not installed."""

    error_type = "backend_unavailable"


class CircuitBreakerOpen(MessagingError):
    """Sending is suspended after repeated failures; `retry_after` says for how many seconds."""

    error_type = "circuit_breaker_open"


class InvalidQueueName(MessagingError):
    """The queue name breaks the rules of the backend."""

    retryable: bool = False
    error_type = "invalid_queue_name"


def _plain(item: Any) -> Any:
    to_dict = getattr(item, "to_dict", None)
    if callable(to_dict):
        return to_dict()
    return item if isinstance(item, (str, int, float, bool, dict, list)) else str(item)
