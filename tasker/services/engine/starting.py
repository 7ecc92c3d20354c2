"""Start of a task's first steps in the submitting process, in the submission's own transaction."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, TypeAlias

from tasker.services.engine.answers import SubmitAnswer

StartableSubmission: TypeAlias = Callable[[Mapping[str, Any]], Awaitable[SubmitAnswer]]
"""Function that submits with these arguments."""


class EagerStarter(Protocol):
    """Worker in the submitting process."""

    async def start(self, submit: StartableSubmission, roots: int, args: Mapping[str, Any]) -> SubmitAnswer:
        """Submit, reserving slots for `roots` steps, and start the steps handed off by the answer.

        The worker adds its own arguments (`CompletingWorker.args`). Raises as `submit`.
        """
        ...
