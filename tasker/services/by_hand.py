"""What operators do through a program is kept like what they do over HTTP and by commands: before anything is done.

A server and the command line keep what is asked of them themselves, with what they know of who asks; what they call
then is not kept once more.
"""

from __future__ import annotations

import getpass
import inspect
import socket
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from operator import attrgetter
from typing import Any, ParamSpec, TypeVar
from uuid import uuid4

from tasker.errors import TaskerError
from tasker.services.server.operator_log import OperatorAction, OperatorLog

DONE, FAILED = 0, 1
WHO = ("actor", "by")
WHAT = ("task_uuid", "step", "target", "entry_uuid", "replay_uuid", "name")
"""Parameters that name who acts, and what is meant. What others say may be secret, or is kept with what was done."""
P = ParamSpec("P")
T = TypeVar("T")
Method = Callable[P, Coroutine[Any, Any, T]]
_kept: ContextVar[bool] = ContextVar("kept", default=False)


@contextmanager
def kept() -> Iterator[None]:
    """What is done in this block is kept already."""
    before = _kept.set(True)
    try:
        yield
    finally:
        _kept.reset(before)


def by_hand(endpoint: str, connection: str = "_engine.connection") -> Callable[[Method[P, T]], Method[P, T]]:
    """Of a service's method that changes something by hand: called by a program it is kept as `endpoint`.

    `connection` says where the service has its own. Where nothing can be kept nothing is done.
    """

    def decorate(method: Method[P, T]) -> Method[P, T]:
        signature = inspect.signature(method)

        @wraps(method)
        async def recorded(*args: P.args, **kwargs: P.kwargs) -> T:
            if _kept.get():
                return await method(*args, **kwargs)
            log = OperatorLog(attrgetter(connection)(args[0]))
            action = await log.asked(_action(endpoint, signature.bind(*args, **kwargs).arguments))
            try:
                with kept():
                    done = await method(*args, **kwargs)
            except TaskerError:
                await log.answered(action, FAILED)
                raise
            await log.answered(action, DONE)
            return done

        return recorded

    return decorate


def _action(endpoint: str, given: dict[str, Any]) -> OperatorAction:
    return OperatorAction(
        actor=next((given[name] for name in WHO if given.get(name)), None) or os_user(),
        proof="os_user",
        endpoint=endpoint,
        path=" ".join(str(given[name]) for name in WHAT if given.get(name)),
        request_id=str(uuid4()),
        address=socket.gethostname(),
    )


def os_user() -> str:
    """The name of the operating system's user."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
