"""What the clients of one process share."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class PerProcess(Generic[T]):
    """A `value`, to be used under its `lock`. A process that is forked begins with what `make` returns, as this one.

    It has none of the threads that serve the value of the other, and perhaps a lock that nobody will release. That
    value is kept, and not used: whoever closes its sockets may disturb the other process.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make, self._of_others = make, list[T]()
        self.lock, self.value = threading.Lock(), make()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begin_anew)

    def _begin_anew(self) -> None:
        self._of_others.append(self.value)
        self.lock, self.value = threading.Lock(), self._make()
