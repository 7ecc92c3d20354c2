"""Base of classes with one instance that a program shares."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, ClassVar, Self


class SharedInstance:
    """Class of which a program may create several instances; `instance()` creates and returns the shared one."""

    _instance: ClassVar[Any] = None
    _lock: ClassVar[threading.Lock]

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        cls._instance, cls._lock = None, threading.Lock()

    @classmethod
    def instance(cls) -> Self:
        """Return the shared instance."""
        return cls._shared(cls)

    @classmethod
    def _shared(cls, make: Callable[[], Self]) -> Self:
        with cls._lock:
            if cls._instance is None:
                cls._instance = make()
            found: Self = cls._instance
            return found

    @classmethod
    def _forget_shared(cls) -> Self | None:
        """Discard the shared instance and return it, or None; the next `instance()` creates a new one."""
        with cls._lock:
            found: Self | None = cls._instance
            cls._instance = None
            return found
