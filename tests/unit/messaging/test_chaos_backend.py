"""The wrapper that does faults on purpose: what is dropped, doubled and late, that it is told, and its seed."""

from __future__ import annotations

import pytest

from tasker.messaging.backends import load_backend
from tasker.messaging.chaos import ChaosBackend, Faults
from tasker.messaging.guarded import ForwardingBackend
from tasker.messaging.port import Backend

QUEUE, SENT = "q", 200
PAYLOADS = [str(number).encode() for number in range(SENT)]


class Kept(ForwardingBackend):
    """A backend that still has its messages when the wrapper has sent what is late, and closed it."""

    async def close(self) -> None:
        """Not yet."""


async def sent(faults: Faults) -> tuple[ChaosBackend, list[bytes]]:
    """The wrapper after `SENT` messages, and what of them is in the queue once it is closed."""
    plain: Backend = load_backend("memory", {})
    await plain.create_queue(QUEUE)
    backend = ChaosBackend(Kept(plain), faults)
    await backend.send_messages(QUEUE, PAYLOADS)
    await backend.close()
    return backend, [message.payload for message in await plain.receive_messages(QUEUE, 3 * SENT, 30.0)]


async def test_without_faults_every_message_is_sent_once_in_order() -> None:
    backend, found = await sent(Faults())

    assert found == PAYLOADS
    assert dict(backend.faults_done) == {"none": SENT}


async def test_a_dropped_message_never_comes() -> None:
    backend, found = await sent(Faults(drop=0.3, seed=1))

    assert 0 < backend.faults_done["drop"] == SENT - len(found) < SENT
    assert len({*found}) == len(found)


async def test_a_doubled_message_comes_twice() -> None:
    backend, found = await sent(Faults(dup=0.3, seed=1))

    assert {*found} == {*PAYLOADS}
    assert 0 < backend.faults_done["dup"] == len(found) - SENT < SENT


async def test_a_late_message_comes_once_after_the_others() -> None:
    backend, found = await sent(Faults(delay=0.3, delay_ms=1, seed=1))

    assert sorted(found) == sorted(PAYLOADS)
    late = backend.faults_done["delay"]
    assert 0 < late < SENT
    on_time = found[: SENT - late]
    assert on_time == [payload for payload in PAYLOADS if payload in {*on_time}]


async def test_one_seed_is_one_sequence_of_faults_and_another_seed_another() -> None:
    faults = [Faults(0.2, 0.2, 0.0, seed=seed) for seed in (7, 7, 8)]
    first, again, other = [(await sent(each))[1] for each in faults]

    assert first == again != other


async def test_each_fault_is_logged_with_its_queue_when_it_is_done(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "tasker.chaos")
    backend, _ = await sent(Faults(0.2, 0.2, 0.2, delay_ms=1, seed=3))

    told = [record.getMessage().split() for record in caplog.records]
    for fault in ("drop", "dup", "delay"):
        assert told.count(["injected_fault", fault, QUEUE]) == backend.faults_done[fault] > 0
    assert len(told) == SENT - backend.faults_done["none"]
