"""Audit records of operator commands: actor and command are recorded in the transaction of the change.

A server records its own requests, so only commands that access the database directly write a record here.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol, TypeVar

import click

from tasker.cli.connection import actor
from tasker.cli.main import MISTAKES

if TYPE_CHECKING:
    from tasker.cli.remote.fleet import OperatorLogService
    from tasker.services.audit import OperatorAction

NAMING = ("namespace", "template", "step", "task", "queue", "fingerprint")
"""Options that name the target of a command. Other options may hold secrets, or are recorded with the change itself."""
DONE, FAILED, MISTAKE = 0, 1, 2


class Logging(Protocol):
    """Fleet with an audit log."""

    @property
    def operator_log(self) -> OperatorLogService:
        """Audit log of the fleet."""
        ...


F = TypeVar("F", bound=Logging)
T = TypeVar("T")


async def recorded(fleet: F, use: Callable[[F], Awaitable[T]], *, several: bool = False) -> T:
    """Run `use` and return its result; record the current command in the transaction of the change.

    With `several` the record is written before the first change. If the record cannot be written, nothing is changed.
    """
    from tasker.services.audit import OperatorAudit

    audit = OperatorAudit(fleet.operator_log, _action(click.get_current_context()), DONE)

    async def using() -> T:
        if several:
            await audit.begin()
        return await use(fleet)

    return await audit.record(
        using, lambda done: DONE, lambda error: MISTAKE if isinstance(error, MISTAKES) else FAILED
    )


def _text(given: object) -> str:
    """Return the value of an argument as text, all values if it takes several."""
    return " ".join(map(str, given)) if isinstance(given, tuple) else "" if given is None else str(given)


def _action(command: click.Context) -> OperatorAction:
    from tasker.clock import new_uuid
    from tasker.services.audit import OperatorAction

    arguments = [parameter.name for parameter in command.command.params if isinstance(parameter, click.Argument)]
    named = [text for name in arguments if name and (text := _text(command.params.get(name)))]
    named += [
        f"--{name} {command.params[name]}" for name in NAMING if name not in arguments and command.params.get(name)
    ]
    return OperatorAction(
        actor=actor(),
        proof="os_user",
        endpoint=" ".join(["tasker", *command.command_path.split()[1:]]),  # without the name of the executable
        path=" ".join(named),
        request_id=new_uuid(),
        address=socket.gethostname(),
    )
