"""`TASKER_CHAOS`: what may be asked for, that it is told, and that every way of sending has faults."""

from __future__ import annotations

import asyncio
import logging

import pytest

from tasker.errors import UsageError
from tasker.messaging.backends import load_backend
from tasker.messaging.chaos import ChaosBackend, Faults


def test_shares_lateness_and_seed_are_read() -> None:
    assert Faults.parse("drop:0.01, dup:0.02,delay:0.05,delay_ms:300,seed:7") == Faults(0.01, 0.02, 0.05, 300.0, 7)
    assert Faults.parse("drop:0.5,dup:0.5").total == 1.0


@pytest.mark.parametrize(
    ("asked", "found", "expected"),
    [
        ("drop:nan", "drop is 'nan'", "a share from 0 to 1"),
        ("drop:inf", "drop is 'inf'", "a share from 0 to 1"),
        ("dup:-0.1", "dup is '-0.1'", "a share from 0 to 1"),
        ("delay:1.1", "delay is '1.1'", "a share from 0 to 1"),
        ("drop", "drop is ''", "a share from 0 to 1"),
        ("delay_ms:inf", "delay_ms is 'inf'", "milliseconds from 0 to 60000"),
        ("delay_ms:nan", "delay_ms is 'nan'", "milliseconds from 0 to 60000"),
        ("seed:inf", "seed is 'inf'", "a whole number"),
        ("seed:1.5", "seed is '1.5'", "a whole number"),
        ("drop:0.6,dup:0.6", "the shares add up to 1.2", "at most 1 for all of them"),
        ("drop:0.1,drop:0.2", "drop is named twice", "each name once"),
        ("dorp:0.1", "'dorp' is no fault", "one of drop, dup, delay, delay_ms, seed"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_what_was_expected(asked: str, found: str, expected: str) -> None:
    with pytest.raises(UsageError) as caught:
        Faults.parse(asked)

    assert caught.value.message == f"TASKER_CHAOS: {found}"
    assert f"expected {expected}" in (caught.value.hint or "")
    assert "unset it" in (caught.value.hint or "")


async def test_one_warning_at_the_start_says_what_is_done_to_messages(caplog: pytest.LogCaptureFixture) -> None:
    backend = ChaosBackend(
        load_backend("memory", {}), Faults.parse("drop:0.01,dup:0.02,delay:0.05,delay_ms:300,seed:7")
    )
    await backend.open()
    await backend.open()

    (told,) = [record for record in caplog.records if record.name == "tasker.chaos"]
    assert told.levelno == logging.WARNING
    assert "TASKER_CHAOS is set" in told.message
    assert "1.00% are dropped, 2.00% are sent twice, 5.00% are sent 300 ms late (seed 7)" in told.message


@pytest.mark.parametrize(("asked", "depth"), [("drop:1", 0), ("dup:1", 2), ("delay:1,delay_ms:1", 1)])
async def test_messages_sent_with_a_delay_have_faults_as_well(asked: str, depth: int) -> None:
    plain = load_backend("memory", {})
    await plain.create_queue("q")
    backend = ChaosBackend(plain, Faults.parse(asked))
    await backend.send_message_with_delay("q", b"{}", 60.0)
    await asyncio.gather(*backend._late)

    assert (await plain.queue_stats("q")).depth == depth
    assert await plain.receive_messages("q", 10, 30.0) == []
