"""Fault injection: a wrapper around any backend that drops, duplicates and delays messages.

Enable it with `TASKER_CHAOS=drop:0.01,dup:0.01,delay:0.05` (shares of the messages sent) and optionally `seed:7`,
`delay_ms:200`. A wrapped backend is never transactional: its messages are sent after the commit, where faults happen.
The engine must tolerate the faults, because a message is only a wake-up. A task request is more: a dropped one is lost
until it is submitted again.
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

from tasker.dataclasses import dataclass
from tasker.errors import MessagingError, UsageError
from tasker.messaging.guarded import ForwardingBackend
from tasker.messaging.port import Backend

VARIABLE = "TASKER_CHAOS"
SHARES = ("drop", "dup", "delay")
LATEST_MS = 60_000.0
"""Upper limit of the delay, because delayed messages wait in the process."""
_log = logging.getLogger("tasker.chaos")


@dataclass(frozen=True, slots=True)
class Faults:
    """Rates of injected faults from 0.0 to 1.0, with a sum of at most 1.0, because a message gets at most one fault.

    A delayed message is sent `delay_ms` later, up to a minute. With a `seed` the same sends get the same faults.
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
        """Share of messages that get a fault."""
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
    if not 0 <= number <= most:  # excludes nan too
        raise _refused(f"{name} is {text!r}", expected)
    return number


def _refused(problem: str, expected: str) -> UsageError:
    hint = f"expected {expected}, as in {VARIABLE}=drop:0.01,dup:0.01,delay:0.05,delay_ms:200,seed:7; or unset it"
    return UsageError(f"{VARIABLE}: {problem}", hint=hint)


class ChaosBackend(ForwardingBackend):
    """Backend that injects faults into its sends.

    Each fault is counted in `faults_done` and logged immediately, so that even a killed process has reported it.
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
        """Connect, and log a warning about the configured faults once."""
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
        """Send the delayed messages and close the connections."""
        await asyncio.gather(*self._late, return_exceptions=True)
        await self._backend.close()

    async def send_message(self, queue: str, payload: bytes) -> int:
        return (await self.send_messages(queue, [payload]))[0]

    async def send_messages(self, queue: str, payloads: Sequence[bytes]) -> list[int]:
        """Send each message, or inject a fault; a message that was not sent gets the identifier 0."""
        return [await self._one(queue, partial(self._backend.send_message, queue, payload)) for payload in payloads]

    async def send_message_with_delay(self, queue: str, payload: bytes, delay_seconds: float) -> int:
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
