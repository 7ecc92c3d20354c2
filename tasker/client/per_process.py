"""State shared by the clients of one process."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class PerProcess(Generic[T]):
    """`value` made by `make`, to be used under its `lock`. A forked process starts with a new one.

    The fork has none of the threads that serve the parent's value, and may inherit a locked lock. The parent's value is
    kept referenced but unused: closing its sockets could disturb the parent.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make, self._of_others = make, list[T]()
        self.lock, self.value = threading.Lock(), make()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begin_anew)

    def _begin_anew(self) -> None:
        self._of_others.append(self.value)
        self.lock, self.value = threading.Lock(), self._make()
