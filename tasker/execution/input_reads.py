"""Reads of handlers' inputs that neither the claim's answer nor the cache has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from tasker.dataclasses import dataclass
from tasker.db.connection import DataRefused
from tasker.engine.bisect import halved
from tasker.engine.calls import Engine
from tasker.engine.exchange import CLAIM_BYTES, Inputs, TooLarge, inputs_of, too_large_of
from tasker.handlers.claims import Failure

INPUTS_TOO_LARGE = "inputs_too_large"
HINT = "store large data elsewhere and return references to it, or join the results in several steps"


@dataclass(slots=True)
class InputsRead:
    """Inputs that an `InputReader` has read."""

    shared: list[Inputs] = field(default_factory=list)
    own: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """Inputs and checkpoint, by step."""
    too_large: dict[str, TooLarge] = field(default_factory=dict)


class InputReader:
    """Reader of inputs in answers of bounded size. A request that the database refuses is halved, down to one step."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def read(self, steps: Sequence[str], own: Sequence[str] = ()) -> InputsRead:
        """Read what the handlers of `steps` share with others, and the own inputs of the steps in `own`."""
        read = InputsRead()

        async def shared(part: Sequence[str]) -> None:
            while part:
                answer = await self._engine.read("inputs", {"steps": part, "max_bytes": CLAIM_BYTES})
                read.shared.append(inputs_of(answer))
                read.too_large |= too_large_of(answer)
                part = answer.get("rest") or ()

        async def of_its_own(part: Sequence[str]) -> None:
            while part:
                args = {"steps": [], "own": part, "max_bytes": CLAIM_BYTES}
                answer = (await self._engine.read("inputs", args))["own"] or {}
                read.own |= {step: row for step, row in answer.items() if not row.get("later")}
                part = [step for step in answer if step not in read.own]

        async def describe(step: str, _: DataRefused) -> None:
            args = {"steps": [step], "describe": True, "max_bytes": CLAIM_BYTES}
            read.too_large |= too_large_of(await self._engine.read("inputs", args))

        await halved(steps, shared, describe)
        await halved(own, of_its_own, describe)
        return read


def failed_of(oversized: TooLarge) -> Failure:
    """Return the failure of a step that can never be given its inputs."""
    largest = ", ".join(f"{name} {_mega(size)}" for name, size in oversized.largest)
    message = (
        f"the inputs of this step are {_mega(oversized.bytes)} ({oversized.results} results of steps before it and the"
        f" task's context), expected at most 256 MB; the largest: {largest or 'the context'}; {HINT}"
    )
    metadata = {"bytes": oversized.bytes, "results": oversized.results, "largest": dict(oversized.largest)}
    return Failure(message, INPUTS_TOO_LARGE, retryable=False, metadata=metadata)


def _mega(size: int) -> str:
    return f"{size / 1_000_000:.1f} MB"
