"""Importing what a command needs."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def pause_gc() -> Iterator[None]:
    """Around imports: modules stay for as long as the process.

    Looking for garbage among them takes a tenth of the start, and each full collection of a worker would look through
    them again.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
