"""What a worker has in hand, and what it gives back."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from tasker.contracts.execution import Claim
from tasker.execution.attempt.cancel import CancelFlag


@dataclass(slots=True, eq=False)
class Running:
    """A claim in this worker's hands: while its handler runs, and until its result is stored."""

    claim: Claim
    key: str
    """The template's identifier and the step's ordinal in it."""
    handler: str
    cancel: CancelFlag = field(default_factory=CancelFlag)
    task: asyncio.Task[None] | None = None
    ended: bool = False


@dataclass(frozen=True, slots=True)
class GivenBack:
    """A claim that is released without an attempt; the note says why. `delay_ms`: not before that time has passed."""

    claim: Claim
    note: Mapping[str, str]
    delay_ms: int | None = None
