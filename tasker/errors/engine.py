"""Errors of the engine: templates, submission, state machines, storage, messaging."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from tasker.errors.base import TaskerError


class UsageError(TaskerError):
    """Invalid argument of a command or call (exit code 2)."""

    retryable: bool = False
    error_type = "usage_error"


class TemplateNotFound(UsageError):
    """Error raised if no template of that name, or not that version, is registered."""

    error_type = "template_not_found"


class TemplateError(TaskerError):
    """Error of an unusable template; `diagnostics` holds every problem with its location."""

    retryable: bool = False
    error_type = "template_error"

    def __init__(self, message: str, *, diagnostics: Sequence[Any] = (), **fields: Any) -> None:
        super().__init__(message, **fields)
        self.diagnostics = tuple(diagnostics)

    def details(self) -> Mapping[str, Any]:
        """Return the diagnostics as mappings where they support it, else as text."""
        return {"diagnostics": [_plain(item) for item in self.diagnostics] or None}


class UnknownLimit(TemplateError):
    """Error of a template whose steps name limits of no configuration: `limits`; `known` are the declared ones."""

    error_type = "unknown_limit"

    def __init__(self, message: str, *, limits: Sequence[str] = (), known: Sequence[str] = (), **fields: Any) -> None:
        super().__init__(message, **fields)
        self.limits, self.known = tuple(limits), tuple(known)


class PlanUnreadable(TaskerError):
    """Error of a stored template that a newer version of Tasker wrote and this one cannot read."""

    retryable: bool = True
    error_type = "plan_unreadable"


class CycleDetected(TemplateError):
    """Error of dependencies that form a cycle; `cycle` names its steps in order, with the first repeated at the end."""

    error_type = "dependency_cycle"

    def __init__(self, message: str, *, cycle: Sequence[str] = (), **fields: Any) -> None:
        super().__init__(message, **fields)
        self.cycle = tuple(cycle)

    def details(self) -> Mapping[str, Any]:
        """Return the cycle as a list, in addition to the diagnostics."""
        return {**super().details(), "cycle": list(self.cycle) or None}


class InputInvalid(TaskerError):
    """Error of a task context that does not match the template's `input_schema`; `problems` names each location."""

    retryable: bool = False
    error_type = "input_invalid"

    def __init__(self, message: str, *, problems: Sequence[Any] = (), **fields: Any) -> None:
        super().__init__(message, **fields)
        self.problems = list(problems)

    def details(self) -> Mapping[str, Any]:
        """Return the problems as plain values."""
        return {"problems": [_plain(item) for item in self.problems] or None}


class NotStorable(TaskerError):
    """Error of a value that cannot be stored. `path` is the location (`$.rows[3].price`), `reason` the problem there.

    `error_type` is `not_storable`, `result_too_large` if only the size is the problem, or `result_holds_secret`.
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
        """Return the error for a location, which begins its message."""
        return cls(f"{path}: {reason}", path=path, reason=reason, too_large=too_large, hint=hint)

    @classmethod
    def secret(cls, path: str) -> Self:
        """Return the error for a location that contains a secret."""
        error = cls.at(path, "it contains a secret", hint="return what was done with it, not the secret")
        error.error_type = "result_holds_secret"
        return error


class DuplicateTask(TaskerError):
    """Error raised if a task of the same identity exists.

    It has that task's `task_uuid`, `state` and number of `steps` at the time. They are not in the message or in
    `to_dict`, which may reach a client without access to the task.
    """

    retryable: bool = False
    error_type = "duplicate_task"

    def __init__(
        self, message: str, *, task_uuid: str | None = None, state: str | None = None, steps: int = 0, **fields: Any
    ) -> None:
        super().__init__(message, **fields)
        self.task_uuid, self.state, self.steps = task_uuid, state, steps


class IdempotencyKeyReused(DuplicateTask):
    """Error raised if the idempotency key belongs to a task with another input; `problems` lists the differences."""

    error_type = "idempotency_key_reused"

    def __init__(self, message: str, *, problems: Sequence[Any] = (), **fields: Any) -> None:
        super().__init__(message, **fields)
        self.problems = list(problems)

    def details(self) -> Mapping[str, Any]:
        """Return the differences as plain values."""
        return {"problems": [_plain(item) for item in self.problems] or None}


class TaskTooDeep(TaskerError):
    """Error raised if a step starts a task too many links below the first task of its line; it was not created."""

    retryable: bool = False
    error_type = "task_too_deep"


class Overloaded(TaskerError):
    """Error raised if new work is refused for `retry_after` seconds. Nothing was created."""

    error_type = "overloaded"


class QuotaExceeded(Overloaded):
    """Error raised if a client, template or tenant has submitted too much; nothing was created."""

    error_type = "quota_exceeded"


class RegistryChanged(TaskerError):
    """Error raised if templates were registered since a deployment was planned. Nothing was registered."""

    retryable: bool = False
    error_type = "registry_changed"


class TaskNotFound(TaskerError):
    """Error raised if no task has that id."""

    retryable: bool = False
    error_type = "task_not_found"


class StepNotFound(TaskerError):
    """Error raised if the task has no such step."""

    retryable: bool = False
    error_type = "step_not_found"


class HookNotFound(TaskerError):
    """Error raised if the server has no hook of that name."""

    retryable: bool = False
    error_type = "hook_not_found"


class ScheduleNotFound(TaskerError):
    """Error raised if the database has no schedule of that name."""

    retryable: bool = False
    error_type = "schedule_not_found"


class ApprovalNotFound(TaskerError):
    """Error raised if the task has no such approval, or has not reached it."""

    retryable: bool = False
    error_type = "approval_not_found"


class ApprovalDecided(TaskerError):
    """Error raised if a person has decided already, or an approval is over; nothing was changed.

    `outcome` is what it ended as, None while it is open; `votes` are those that count: `by`, `decision`, `at`.
    """

    retryable: bool = False
    error_type = "approval_decided"

    def __init__(
        self, message: str, *, outcome: str | None = None, votes: Sequence[Mapping[str, Any]] = (), **fields: Any
    ) -> None:
        super().__init__(message, **fields)
        self.outcome, self.votes = outcome, list(votes)

    def details(self) -> Mapping[str, Any]:
        """Return what was decided."""
        return {"outcome": self.outcome, "votes": self.votes or None}


class DeadLetterNotFound(TaskerError):
    """Error raised if no dead letter has that id."""

    retryable: bool = False
    error_type = "dead_letter_not_found"


class StateMachineError(TaskerError):
    """Error of an invalid request to a state machine."""

    retryable: bool = False
    error_type = "state_machine_error"


class IllegalTransition(StateMachineError):
    """Error raised if the event is not legal in that state."""

    error_type = "illegal_transition"


class DatabaseError(TaskerError):
    """Error of a statement that the database refused or failed."""

    retryable: bool = True
    error_type = "database_error"


class DatabaseUnavailable(DatabaseError):
    """Error raised if the database is unreachable."""

    error_type = "database_unavailable"


class SessionRefused(DatabaseUnavailable):
    """Error raised if the server answers but refuses a new session. Nothing was sent."""


class TooManyConnections(SessionRefused):
    """Error raised if the server, database or role has reached its limit of sessions. Nothing was sent; retry."""

    error_type = "too_many_connections"


class ConnectionLost(DatabaseUnavailable):
    """Error raised if the connection ended during a statement; it is unknown whether it was carried out."""


class DatabaseBreakerOpen(DatabaseUnavailable):
    """Error raised if the database's circuit breaker is open after repeated failures, for `retry_after` seconds."""

    error_type = "database_breaker_open"


class PoolExhausted(DatabaseError):
    """No connection became free in time; `metadata` has the pool's sizes. Nothing was sent: try again."""

    error_type = "pool_exhausted"


class StatementTimeout(DatabaseError):
    """The database cancelled a statement that ran for too long; nothing of it was stored, unless it committed
    by itself in between."""

    error_type = "statement_timeout"


class LockTimeout(DatabaseError):
    """Error raised if a statement waited too long for a lock of another transaction; nothing of it was stored."""

    error_type = "lock_timeout"


class SchemaOutdated(DatabaseError):
    """Error raised if the schema in the database is not the one this version works with."""

    retryable: bool = False
    error_type = "schema_outdated"


class MessagingError(TaskerError):
    """Error of an operation that a messaging backend refused or failed."""

    retryable: bool = True
    error_type = "messaging_error"


class BackendUnavailable(MessagingError):
    """Error raised if the messaging backend cannot be reached, or is not installed."""

    error_type = "backend_unavailable"


class CircuitBreakerOpen(MessagingError):
    """Error raised if sending is suspended after repeated failures, for `retry_after` seconds."""

    error_type = "circuit_breaker_open"


class InvalidQueueName(MessagingError):
    """Error raised if the queue name breaks the rules of the backend."""

    retryable: bool = False
    error_type = "invalid_queue_name"


def _plain(item: Any) -> Any:
    to_dict = getattr(item, "to_dict", None)
    if callable(to_dict):
        return to_dict()
    return item if isinstance(item, (str, int, float, bool, dict, list)) else str(item)
