"""Faults on purpose: a wrapper around any backend that drops, doubles and delays messages.

Chosen with `TASKER_CHAOS=drop:0.01,dup:0.01,delay:0.05` (shares of the messages sent) and optional `seed:7`,
`delay_ms:200`. A wrapped backend is never transactional: its messages are sent after the commit, where faults happen.
The engine must not care, because a message is only a hint.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from tasker.contracts.messaging import Backend
from tasker.errors import MessagingError, UsageError
from tasker.messaging.forwarding import ForwardingBackend

VARIABLE = "TASKER_CHAOS"
_log = logging.getLogger("tasker.chaos")


@dataclass(frozen=True, slots=True)
class Faults:
    """How often what goes wrong: shares from 0.0 to 1.0; `delay_ms` is how late a delayed message is sent."""

    drop: float = 0.0
    dup: float = 0.0
    delay: float = 0.0
    delay_ms: float = 200.0
    seed: int | None = None

    @classmethod
    def parse(cls, text: str) -> Faults:
        """Read `drop:0.01,dup:0.01,delay:0.05`. Raises `UsageError`."""
        values: dict[str, Any] = {}
        for part in filter(None, (piece.strip() for piece in text.split(","))):
            name, _, value = part.partition(":")
            if name not in cls.__slots__:
                raise UsageError(f"{VARIABLE}: {name!r} is no fault", hint=f"expected {', '.join(cls.__slots__)}")
            values[name] = _number(name, value)
        seed = values.pop("seed", None)
        return replace(cls(**values), seed=None if seed is None else int(seed))


def _number(name: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if number < 0 or (name in ("drop", "dup", "delay") and number > 1):
        raise UsageError(f"{VARIABLE}: {name} is {value!r}", hint="expected a share from 0 to 1, as in drop:0.01")
    return number


class ChaosBackend(ForwardingBackend):
    """A backend whose sends sometimes go wrong. `faults_done` counts what was done."""

    def __init__(self, backend: Backend, faults: Faults) -> None:
        super().__init__(backend)
        self._faults = faults
        self._random = Random(faults.seed)
        self._late: set[asyncio.Task[None]] = set()
        self.capabilities = replace(backend.capabilities, transactional=False)
        self.faults_done: Counter[str] = Counter()

    async def close(self) -> None:
        """Send what is late, release connections."""
        await asyncio.gather(*self._late, return_exceptions=True)
        await self._backend.close()

    async def send_message(self, queue: str, payload: bytes) -> int:
        """Send, or not, or twice, or later."""
        return (await self.send_messages(queue, [payload]))[0]

    async def send_messages(self, queue: str, payloads: Sequence[bytes]) -> list[int]:
        """Send each, or not, or twice, or later; a message that was not sent has the identifier 0."""
        ids = []
        for payload in payloads:
            ids.append(await self._one(queue, payload))
        return ids

    async def _one(self, queue: str, payload: bytes) -> int:
        fault = self._draw()
        self.faults_done[fault] += 1
        if fault == "drop":
            return 0
        if fault == "delay":
            task = asyncio.create_task(self._send_late(queue, payload))
            self._late.add(task)
            task.add_done_callback(self._late.discard)
            return 0
        if fault == "dup":
            await self._backend.send_message(queue, payload)
        return await self._backend.send_message(queue, payload)

    def _draw(self) -> str:
        number, edge = self._random.random(), 0.0
        for fault in ("drop", "dup", "delay"):
            edge += getattr(self._faults, fault)
            if number < edge:
                return fault
        return "none"

    async def _send_late(self, queue: str, payload: bytes) -> None:
        await asyncio.sleep(self._faults.delay_ms / 1000)
        try:
            await self._backend.send_message(queue, payload)
        except MessagingError as error:
            _log.info("a delayed message was lost: %s", error)
