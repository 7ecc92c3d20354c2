"""Classes of which a program shares one object."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, ClassVar, Self


class SharedInstance:
    """A program may make several; `instance()` is the one that it shares, made when it is first asked for."""

    _instance: ClassVar[Any] = None
    _lock: ClassVar[threading.Lock]

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        cls._instance, cls._lock = None, threading.Lock()

    @classmethod
    def instance(cls) -> Self:
        """The one that a program shares."""
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
        """The next `instance()` makes a new one; the former one, if there was one."""
        with cls._lock:
            found: Self | None = cls._instance
            cls._instance = None
            return found
