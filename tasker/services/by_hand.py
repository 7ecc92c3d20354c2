"""Audit of operator actions called by a program: recorded with the change, or the change is not made.

A server and the command line name the actor themselves (`OperatorAudit`); the methods they call are recorded as that
action.
"""

from __future__ import annotations

import inspect
import socket
from collections.abc import Callable, Coroutine
from functools import partial, wraps
from operator import attrgetter
from typing import Any, ParamSpec, TypeVar
from uuid import uuid4

from tasker.db.together import SharedTransactions
from tasker.services.asking import OperatorAudit
from tasker.services.server.operator_log import AuditLog, OperatorAction

DONE, FAILED = 0, 1
WHO = ("actor", "by")
WHAT = ("task_uuid", "step", "target", "entry_uuid", "replay_uuid", "name")
"""Parameters that name the actor and the subject. Others may be secret, or are recorded with the change itself."""
P = ParamSpec("P")
T = TypeVar("T")
Method = Callable[P, Coroutine[Any, Any, T]]


def audited(
    endpoint: str, connection: str = "_engine.connection", *, several: bool = False
) -> Callable[[Method[P, T]], Method[P, T]]:
    """Decorate a service method that is an operator action; called by a program it is recorded as `endpoint`.

    The change and its record are one transaction. With `several`, or if no connection is lent, the method has its own
    transactions, and the record is written before the first. `connection` is the attribute path of the service's
    connection. If the action cannot be recorded, it is not done.
    """

    def decorate(method: Method[P, T]) -> Method[P, T]:
        signature = inspect.signature(method)

        @wraps(method)
        async def recorded(*args: P.args, **kwargs: P.kwargs) -> T:
            statements, call = attrgetter(connection)(args[0]), partial(method, *args, **kwargs)
            lending = statements if isinstance(statements, SharedTransactions) and not several else None
            if (asking := OperatorAudit.current()) is not None:
                return await asking.act(lending, call)
            given = signature.bind(*args, **kwargs).arguments
            asking = OperatorAudit(AuditLog(statements), _action(endpoint, given), DONE)
            return await asking.record(lambda: asking.act(lending, call), lambda done: DONE, lambda error: FAILED)

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
    """Return the name of the operating system's user, or "unknown"."""
    import getpass  # imports termios, which most processes do not need

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
