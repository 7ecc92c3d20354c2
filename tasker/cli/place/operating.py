"""Commands that change something by hand: each is kept with who gave it, in the transaction of what it does.

A server keeps what is asked of it by itself; so only commands that reach the database write something here.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol, TypeVar

import click

from tasker.cli.connection import actor
from tasker.cli.main import MISTAKES

if TYPE_CHECKING:
    from tasker.cli.place.fleet import OperatorLogService
    from tasker.services.server.operator_log import OperatorAction

NAMING = ("namespace", "template", "step", "task", "queue", "fingerprint")
"""Options that name what is meant. What others say may be secret, or is kept with what was done."""
DONE, FAILED, MISTAKE = 0, 1, 2


class Logging(Protocol):
    """A fleet that keeps who did what."""

    @property
    def operator_log(self) -> OperatorLogService:
        """Where."""
        ...


F = TypeVar("F", bound=Logging)
T = TypeVar("T")


async def recorded(fleet: F, use: Callable[[F], Awaitable[T]], *, several: bool = False) -> T:
    """What `use` returns; it is kept that the command that runs here does it, in the transaction of what it does, with
    `several` before its first one. Where nothing can be kept nothing is done."""
    from tasker.services.asking import OperatorAudit

    asking = OperatorAudit(fleet.operator_log, _action(click.get_current_context()), DONE)

    async def using() -> T:
        if several:
            await asking.begin()
        return await use(fleet)

    return await asking.record(
        using, lambda done: DONE, lambda error: MISTAKE if isinstance(error, MISTAKES) else FAILED
    )


def _text(given: object) -> str:
    """What an argument was given, all of it where it takes several."""
    return " ".join(map(str, given)) if isinstance(given, tuple) else "" if given is None else str(given)


def _action(command: click.Context) -> OperatorAction:
    from tasker.process.system import new_uuid
    from tasker.services.server.operator_log import OperatorAction

    arguments = [each.name for each in command.command.params if isinstance(each, click.Argument)]
    named = [text for name in arguments if name and (text := _text(command.params.get(name)))]
    named += [
        f"--{name} {command.params[name]}" for name in NAMING if name not in arguments and command.params.get(name)
    ]
    return OperatorAction(
        actor=actor(),
        proof="os_user",
        endpoint=" ".join(["tasker", *command.command_path.split()[1:]]),  # by whatever name it was called
        path=" ".join(named),
        request_id=new_uuid(),
        address=socket.gethostname(),
    )
