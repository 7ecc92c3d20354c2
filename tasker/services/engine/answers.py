"""What each of the engine's functions answers beyond what all of those answer that move steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tasker.contracts.execution import Verdict
from tasker.contracts.messaging import QueuedMessage
from tasker.services.engine.claims import Answer
from tasker.services.engine.exchange import AdvanceResult


@dataclass(frozen=True, slots=True)
class ClaimAnswer(AdvanceResult):
    """Of a claim: `popped` is how many hints were taken, `release` names namespaces with room for held steps."""

    popped: int = 0
    release: Sequence[int] = ()
    taken: Sequence[QueuedMessage] = ()
    """Messages that are to be acknowledged, where they do not live in the database."""

    @classmethod
    def more(cls, answer: Answer) -> dict[str, Any]:
        """As `AdvanceResult.more`."""
        return {"popped": answer.get("popped") or 0, "release": answer.get("release") or ()}

    @property
    def unknown(self) -> set[str]:
        """The steps that this database has never had."""
        return {step for step, verdict in self.verdicts.items() if verdict is Verdict.UNKNOWN}


@dataclass(frozen=True, slots=True)
class BacklogAnswer(AdvanceResult):
    """Of held steps for which there was room: how many."""

    released: int = 0

    @classmethod
    def more(cls, answer: Answer) -> dict[str, Any]:
        """As `AdvanceResult.more`."""
        return {"released": answer.get("released") or 0}


@dataclass(frozen=True, slots=True)
class DueAnswer(AdvanceResult):
    """Of retries that were due: how many, whether others are held by somebody, and when the next is due."""

    promoted: int = 0
    passed_over: bool = False
    next_due_ms: float | None = None

    @classmethod
    def more(cls, answer: Answer) -> dict[str, Any]:
        """As `AdvanceResult.more`."""
        return {
            "promoted": answer.get("promoted") or 0,
            "passed_over": bool(answer.get("passed_over")),
            "next_due_ms": answer.get("next_due_ms"),
        }


@dataclass(frozen=True, slots=True)
class SettleAnswer(AdvanceResult):
    """Of an evaluation of tasks: how many have moved."""

    settled: int = 0

    @classmethod
    def more(cls, answer: Answer) -> dict[str, Any]:
        """As `AdvanceResult.more`."""
        return {"settled": answer.get("settled") or 0}


@dataclass(frozen=True, slots=True)
class MendAnswer(AdvanceResult):
    """Of a repair of what no slice of open tasks shows: the repairs by kind."""

    repaired: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def more(cls, answer: Answer) -> dict[str, Any]:
        """As `AdvanceResult.more`."""
        return {"repaired": answer.get("repaired") or {}}


@dataclass(frozen=True, slots=True)
class SubmitAnswer(AdvanceResult):
    """Of a submission: the tasks that were created, and how many steps each begins with."""

    created: frozenset[str] = frozenset()
    steps: int = 0

    @classmethod
    def more(cls, answer: Answer) -> dict[str, Any]:
        """As `AdvanceResult.more`."""
        return {"created": frozenset(answer["created"]), "steps": answer.get("steps") or 0}


@dataclass(frozen=True, slots=True)
class ParkAnswer(AdvanceResult):
    """Of results that were parked: the pointers to them, for the orchestrators."""

    parked: Sequence[Mapping[str, Any]] = ()

    @classmethod
    def more(cls, answer: Answer) -> dict[str, Any]:
        """As `AdvanceResult.more`."""
        return {"parked": answer.get("parked") or ()}
