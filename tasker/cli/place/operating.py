"""Commands that change something by hand: each is kept with who gave it, before anything is done.

A server keeps what is asked of it by itself; so only commands that reach the database write something here.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol, TypeVar

import click

from tasker.cli.connection import actor
from tasker.cli.main import MISTAKES
from tasker.errors import TaskerError

if TYPE_CHECKING:
    from tasker.cli.place.fleet import OperatorLogService
    from tasker.services.server.operator_log import OperatorAction

NAMING = ("namespace", "template", "step", "task", "queue", "fingerprint")
"""Options that name what is meant. What others say may be secret, or is kept with what was done."""
DONE, FAILED, MISTAKE = 0, 1, 2


class Keeping(Protocol):
    """A fleet that keeps who did what."""

    @property
    def operator_log(self) -> OperatorLogService:
        """Where."""
        ...


F = TypeVar("F", bound=Keeping)
T = TypeVar("T")


async def recorded(fleet: F, use: Callable[[F], Awaitable[T]]) -> T:
    """What `use` returns, once it is kept that the command that runs here does it. Where nothing can be kept nothing
    is done."""
    from tasker.services.by_hand import kept

    log = fleet.operator_log
    action = await log.asked(_action(click.get_current_context()))
    try:
        with kept():
            answer = await use(fleet)
    except TaskerError as error:
        await log.answered(action, MISTAKE if isinstance(error, MISTAKES) else FAILED)
        raise
    await log.answered(action, DONE)
    return answer


def _action(command: click.Context) -> OperatorAction:
    from tasker.process.system import new_uuid
    from tasker.services.server.operator_log import OperatorAction

    arguments = [each.name for each in command.command.params if isinstance(each, click.Argument)]
    named = [str(command.params[name]) for name in arguments if name and command.params.get(name) is not None]
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
