"""What operators do through a program is kept like what they do over HTTP and by commands: with what is done, or not
at all.

A server and the command line say themselves who asks for what (`OperatorAudit`); what they call then is kept as that.
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
"""Parameters that name who acts, and what is meant. What others say may be secret, or is kept with what was done."""
P = ParamSpec("P")
T = TypeVar("T")
Method = Callable[P, Coroutine[Any, Any, T]]


def audited(
    endpoint: str, connection: str = "_engine.connection", *, several: bool = False
) -> Callable[[Method[P, T]], Method[P, T]]:
    """Of a service's method that changes something by hand: called by a program it is kept as `endpoint`.

    It is one transaction with its row; with `several`, or where no connection is lent, it has transactions of its own,
    and the row is there before the first. `connection` says where the service has its own. Where nothing can be kept
    nothing is done.
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
    """The name of the operating system's user."""
    import getpass  # brings termios, and few processes act by hand

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
