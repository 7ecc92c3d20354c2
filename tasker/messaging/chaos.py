"""Faults on purpose: a wrapper around any backend that drops, doubles and delays messages.

Chosen with `TASKER_CHAOS=drop:0.01,dup:0.01,delay:0.05` (shares of the messages sent) and optional `seed:7`,
`delay_ms:200`. A wrapped backend is never transactional: its messages are sent after the commit, where faults happen.
The engine must not care, because a message is only a hint. A request for a task is more: one that is dropped is gone
until it is asked for again.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import fields, replace
from functools import partial
from random import Random
from typing import Any

from tasker.contracts.dataclasses import dataclass
from tasker.contracts.messaging import Backend
from tasker.errors import MessagingError, UsageError
from tasker.messaging.forwarding import ForwardingBackend

VARIABLE = "TASKER_CHAOS"
SHARES = ("drop", "dup", "delay")
LATEST_MS = 60_000.0
"""Late messages wait in the process, so lateness has a bound."""
_log = logging.getLogger("tasker.chaos")


@dataclass(frozen=True, slots=True)
class Faults:
    """How often what goes wrong: shares from 0.0 to 1.0, together at most 1.0, for a message has one fault.

    `delay_ms` is how late a delayed message is sent, up to a minute; with a `seed` the same sends get the same faults.
    """

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
            if name in values:
                raise _refused(f"{name} is named twice", "each name once")
            values[name] = _value(name, value.strip())
        faults = cls(**values)
        if faults.total > 1:
            raise _refused(
                f"the shares add up to {faults.total:g}", "at most 1 for all of them: a message has one fault"
            )
        return faults

    @property
    def total(self) -> float:
        """The share of messages that have a fault."""
        return self.drop + self.dup + self.delay

    def __str__(self) -> str:
        late = f"{self.delay:.2%} are sent {self.delay_ms:g} ms late"
        seed = "no seed" if self.seed is None else f"seed {self.seed}"
        return f"{self.drop:.2%} are dropped, {self.dup:.2%} are sent twice, {late} ({seed})"


def _value(name: str, text: str) -> float | int:
    if name in SHARES:
        return _number(name, text, 1.0, "a share from 0 to 1")
    if name == "delay_ms":
        return _number(name, text, LATEST_MS, f"milliseconds from 0 to {LATEST_MS:g}")
    if name != "seed":
        raise _refused(f"{name!r} is no fault", f"one of {', '.join(field.name for field in fields(Faults))}")
    try:
        return int(text)
    except ValueError:
        raise _refused(f"seed is {text!r}", "a whole number") from None


def _number(name: str, text: str, most: float, expected: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= most:  # nan is neither
        raise _refused(f"{name} is {text!r}", expected)
    return number


def _refused(found: str, expected: str) -> UsageError:
    hint = f"expected {expected}, as in {VARIABLE}=drop:0.01,dup:0.01,delay:0.05,delay_ms:200,seed:7; or unset it"
    return UsageError(f"{VARIABLE}: {found}", hint=hint)


class ChaosBackend(ForwardingBackend):
    """A backend whose sends sometimes go wrong.

    Each fault is counted in `faults_done` and logged when it is done, so that a killed process has told of it.
    """

    def __init__(self, backend: Backend, faults: Faults) -> None:
        super().__init__(backend)
        self._faults = faults
        self._random = Random(faults.seed)
        self._late: set[asyncio.Task[None]] = set()
        self.capabilities = replace(backend.capabilities, transactional=False)
        self.faults_done: Counter[str] = Counter()
        self._told = False

    async def open(self) -> None:
        """Connect, and say once what is done to messages: nobody should search for faults that were asked for."""
        if not self._told:
            _log.warning(
                "%s is set: of the messages that this process sends %s, requests for tasks among them; unset it where"
                " work must not be lost",
                VARIABLE,
                self._faults,
            )
        self._told = True
        await self._backend.open()

    async def close(self) -> None:
        """Send what is late, release connections."""
        await asyncio.gather(*self._late, return_exceptions=True)
        await self._backend.close()

    async def send_message(self, queue: str, payload: bytes) -> int:
        """Send, or not, or twice, or later."""
        return (await self.send_messages(queue, [payload]))[0]

    async def send_messages(self, queue: str, payloads: Sequence[bytes]) -> list[int]:
        """Send each, or not, or twice, or later; a message that was not sent has the identifier 0."""
        return [await self._one(queue, partial(self._backend.send_message, queue, payload)) for payload in payloads]

    async def send_message_with_delay(self, queue: str, payload: bytes, delay_seconds: float) -> int:
        """Send with the delay, or not, or twice, or later still."""
        return await self._one(queue, partial(self._backend.send_message_with_delay, queue, payload, delay_seconds))

    async def _one(self, queue: str, send: Callable[[], Awaitable[int]]) -> int:
        fault = self._draw()
        self.faults_done[fault] += 1
        if fault != "none":
            _log.info("injected_fault %s %s", fault, queue)
        if fault == "drop":
            return 0
        if fault == "delay":
            task = asyncio.create_task(self._send_late(send))
            self._late.add(task)
            task.add_done_callback(self._late.discard)
            return 0
        if fault == "dup":
            await send()
        return await send()

    def _draw(self) -> str:
        number, edge = self._random.random(), 0.0
        for fault in SHARES:
            edge += getattr(self._faults, fault)
            if number < edge:
                return fault
        return "none"

    async def _send_late(self, send: Callable[[], Awaitable[int]]) -> None:
        await asyncio.sleep(self._faults.delay_ms / 1000)
        try:
            await send()
        except MessagingError as error:
            _log.info("a delayed message was lost: %s", error)
