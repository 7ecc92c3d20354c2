"""Starting the first steps of a task in the process that submits it, with the submission's own transaction."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, TypeAlias

from tasker.services.engine.answers import SubmitAnswer

StartableSubmission: TypeAlias = Callable[[Mapping[str, Any]], Awaitable[SubmitAnswer]]
"""Submits with these arguments."""


class EagerStarter(Protocol):
    """The worker in a process that submits."""

    async def start(self, submit: StartableSubmission, roots: int, args: Mapping[str, Any]) -> SubmitAnswer:
        """Submit with what the worker says of itself (`Caller.args`) beside these arguments, setting aside slots for
        so many steps, and start what the answer hands over. Raises as `submit`."""
        ...
