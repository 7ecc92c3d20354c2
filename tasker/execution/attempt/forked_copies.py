"""Copies of this process that a handler creates by forking: they must not continue the worker's code."""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import MutableSequence
from functools import cache
from typing import NoReturn

_loops: weakref.WeakSet[asyncio.AbstractEventLoop] = weakref.WeakSet()


def guard_forked_loop() -> None:
    """Keep forked copies of this process from running the current loop: they would use the worker's connections."""
    _loops.add(asyncio.get_running_loop())
    _register()


def exit_forked_copy(of: int, handler: str) -> None:
    """End this process at once when its process id is not `of`: only the original process answers."""
    if os.getpid() != of:
        _end(f"{handler} has forked, and the copy came back from it; end it with os._exit() in the handler")


@cache
def _register() -> None:
    os.register_at_fork(after_in_child=_halt_loops)


def _halt_loops() -> None:
    """End the forked copy as soon as its code yields to the event loop, before any callback that is ready.

    Callbacks stay scheduled: asyncio would log dropped tasks.
    """
    for loop in list(_loops):
        ready: MutableSequence[asyncio.Handle] | None = getattr(loop, "_ready", None)
        if ready is not None:
            ready.insert(0, asyncio.Handle(_end, (_ON_THE_LOOP,), loop))


_ON_THE_LOOP = "an async handler has forked, and the copy went on with the worker's event loop"


def _end(why: str) -> NoReturn:
    """End the process without clean-up, which would send closing messages on the original's connections."""
    os.write(2, f"process {os.getpid()} was ended: {why}\n".encode())
    os._exit(1)
