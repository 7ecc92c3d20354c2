"""The conformance suite fails for backends that do not keep the contract, and says what it could not test."""

from __future__ import annotations

import pytest

from tasker.messaging.port import Backend
from tasker.testing.messaging_contract import MessagingContract
from tasker_memory import create


class Strangers(MessagingContract):
    """A second process that has queues of its own: it shares nothing."""

    async def another(self, backend: Backend) -> Backend:
        made = create({})
        await made.create_queue("worker_contract_queue")
        return made


async def test_processes_that_share_no_messages_are_noticed() -> None:
    with pytest.raises(AssertionError, match=r"assert \[\]"):
        await Strangers().test_two_processes_share_the_messages_and_get_none_twice(create({}))


@pytest.mark.parametrize("method", ["another", "restart"])
async def test_what_a_class_does_not_say_is_skipped_loudly(method: str) -> None:
    with (
        pytest.warns(UserWarning, match=rf"NOT TESTED on MessagingContract: .*; override {method}\(\)"),
        pytest.raises(pytest.skip.Exception, match="NOT TESTED"),
    ):
        await getattr(MessagingContract(), method)(create({}))
