"""Part of `StepContext` that takes locks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tasker.handlers.locks import Duration, HandlerLock, LockCalls


class Locking:
    """Part of `StepContext` for handlers that take locks."""

    if TYPE_CHECKING:
        _locks: Callable[[], LockCalls] | None

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

        return HandlerLock(UnsharedLocks() if self._locks is None else self._locks(), name, ttl, timeout)
