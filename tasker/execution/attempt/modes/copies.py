"""Copies of this process that a handler makes by forking: what is the worker's must not go on in them."""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import MutableSequence
from functools import cache
from typing import NoReturn

_loops: weakref.WeakSet[asyncio.AbstractEventLoop] = weakref.WeakSet()


def guard_forked_loop() -> None:
    """From now on no copy of this process runs the loop that runs here: it would write to the worker's connections."""
    _loops.add(asyncio.get_running_loop())
    _register()


def exit_forked_copy(of: int, handler: str) -> None:
    """End this process at once when it is not the one with the process id `of`: only the original answers."""
    if os.getpid() != of:
        _end(f"{handler} has forked, and the copy came back from it; end it with os._exit() in the handler")


@cache
def _register() -> None:
    os.register_at_fork(after_in_child=_halt_loops)


def _halt_loops() -> None:
    """The copy goes on where it forked. As soon as that gives way to the loop, the copy ends, before all that is ready.

    Nothing is taken from the loop: a task that was dropped would be complained of.
    """
    for loop in list(_loops):
        ready: MutableSequence[asyncio.Handle] | None = getattr(loop, "_ready", None)
        if ready is not None:
            ready.insert(0, asyncio.Handle(_end, (_ON_THE_LOOP,), loop))


_ON_THE_LOOP = "an async handler has forked, and the copy went on with the worker's event loop"


def _end(why: str) -> NoReturn:
    """Without any cleaning up, which would say good-bye on connections that are the original's."""
    os.write(2, f"process {os.getpid()} was ended: {why}\n".encode())
    os._exit(1)
