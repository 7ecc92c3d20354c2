"""Part of `StepContext` with what a worker lends to handlers: locks, resources, child tasks, a transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tasker.errors import RetryableError, UsageError

if TYPE_CHECKING:
    from tasker.handlers.calls import HandlerCalls
    from tasker.handlers.child_pages import Children
    from tasker.handlers.locks import Duration, HandlerLock


class Lending:
    """Part of `StepContext` with what a worker lends to handlers."""

    if TYPE_CHECKING:
        _calls: Callable[[], HandlerCalls] | None
        _resources: Mapping[str, Any] | None
        _transaction: Any

        @property
        def step_name(self) -> str:
            """Name of the step instance."""
            ...

    def lock(self, name: str, ttl: Duration = "30s", *, timeout: Duration = "10s") -> HandlerLock:
        """Return a lock for a `with` block, or an `async with` block in async handlers.

        At most one handler of all workers holds a lock of a name. It ends with the block, after `ttl` unless it is
        renewed, or when the worker loses the step.

        Args:
            name: Name of the lock, the same in all namespaces, such as `customer-7`.
            ttl: Seconds, a timedelta, or text such as `30s`.
            timeout: How long to wait for the lock; 0 tries once.

        Raises:
            ResourceContentionError: On entering the block: another step holds the lock (`lock_held`).
            RetryableError: On leaving the block: the lock was lost before (`lock_lost`).
        """
        from tasker.handlers.locks import HandlerLock, UnsharedLocks  # needed for handlers with locks only

        return HandlerLock(UnsharedLocks() if self._calls is None else self._calls(), name, ttl, timeout)

    def resource(self, name: str) -> Any:
        """Return the client of a resource of the worker (`[resources.NAME]`); it is made at its first use.

        It is shared with other attempts: do not close it. Declare `@uses(db="orders")`, or `uses = ("orders",)` on a
        class, so that only workers take the step that have the resource. Raises a retryable error without one.
        """
        if self._resources is not None and name in self._resources:
            return self._resources[name]
        has = ", ".join(sorted(self._resources or ())) or "none"
        raise RetryableError(
            f"this worker has no resource `{name}`; it has: {has}",
            error_code="resource_missing",
            hint=f'configure [resources.{name}], and declare @uses(...="{name}")',
        )

    def children(self, step_name: str) -> Children:
        """Return the child tasks of a step with `type: task` above, in the order of its list, read in pages.

        Iterate with `for child in context.children("videos")`, in an async handler with `async for`. Each has `index`,
        `task_uuid`, `state` (`succeeded` or `failed`), `output` and `error`.
        """
        from tasker.handlers.child_pages import Children  # few handlers read it

        return Children(step_name, None if self._calls is None else self._calls())

    @property
    def transaction(self) -> Any:
        """Connection or session of a step with `effect: transactional`: its commit also completes the step.

        Tasker commits after the handler has returned a result, and rolls back after everything else. Raises
        `UsageError` in a step with another effect.
        """
        if self._transaction is None:
            raise UsageError(
                f"the step {self.step_name!r} has no transaction here",
                hint="write `effect: transactional` for the step; mock it in a simulated run, and pass "
                "step_context(transaction=...) in a test",
            )
        return self._transaction

    def enter(self, transaction: Any) -> None:
        """Set the transaction; called by the worker."""
        self._transaction = transaction
