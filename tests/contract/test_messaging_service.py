from __future__ import annotations

import json
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasker.errors import InvalidQueueName, MessagingError
from tasker.messaging import MessagingService, PoisonMessage, QueueNames, StepHint
from tasker.messaging.port import Capabilities
from tasker_memory import create


@pytest.fixture
def service() -> MessagingService:
    return MessagingService(create({}))


def entry(namespace: str = "pay", **more: object) -> dict[str, object]:
    return {"namespace": namespace, "step": str(uuid4()), "task": str(uuid4()), **more}


async def received(service: MessagingService, namespace: str) -> list[str]:
    messages = await service.receive_step_messages(namespace, 100, 30)
    return [str(StepHint.decode(message.payload).step_uuid) for message in messages]


async def test_hints_go_to_their_namespaces_in_order_and_are_counted(service: MessagingService) -> None:
    entries = [entry("ship"), entry("pay"), entry("ship"), entry("pay"), entry("pay")]
    assert await service.send_hints(entries) == {"pay": 3, "ship": 2}
    assert await received(service, "pay") == [item["step"] for item in entries if item["namespace"] == "pay"]
    assert await received(service, "ship") == [item["step"] for item in entries if item["namespace"] == "ship"]


async def test_a_delayed_hint_waits(service: MessagingService) -> None:
    now = entry()
    assert await service.send_hints([entry(delay_ms=60_000), now]) == {"pay": 2}
    assert await received(service, "pay") == [now["step"]]


async def test_a_backend_that_cannot_delay_says_so(service: MessagingService) -> None:
    service.backend.capabilities = Capabilities()
    with pytest.raises(MessagingError, match="the memory backend cannot delay messages"):
        await service.send_hints([entry(delay_ms=1)])


async def test_nothing_to_send_makes_no_queue(service: MessagingService) -> None:
    assert await service.send_hints([]) == {}
    assert await service.list_queues() == []


async def test_a_bad_namespace_is_refused_before_anything_is_sent(service: MessagingService) -> None:
    with pytest.raises(InvalidQueueName):
        await service.send_hints([entry("a b")])
    assert await service.list_queues() == []


async def test_a_namespace_that_nobody_has_sent_to_is_empty(service: MessagingService) -> None:
    assert await service.receive_step_messages("pay", 5, 30) == []


async def test_a_deleted_worker_queue_is_made_again(service: MessagingService) -> None:
    await service.send_hints([entry()])
    await service.delete_queue("worker_pay_queue")
    later = entry()
    await service.send_hints([later])
    assert await received(service, "pay") == [later["step"]]


async def test_one_step_message_is_sent_received_and_acknowledged(service: MessagingService) -> None:
    hint = StepHint(uuid4(), uuid4())
    queue = await service.ensure_namespace("pay")
    assert queue == "worker_pay_queue"
    message_id = await service.send_step_message("pay", hint)
    (message,) = await service.receive_step_messages("pay", 5, 30)
    assert StepHint.decode(message.payload) == hint
    assert await service.ack_message(queue, message_id) is True


async def test_orchestration_messages_travel_on_the_configured_queues() -> None:
    service = MessagingService(create({}), QueueNames(step_results="results"))
    await service.ensure_orchestration_queues()
    await service.send_task_request({"name": "a"})
    await service.send_step_result({"step": "b"})
    await service.send_step_results([{"step": "c"}, {"step": "d"}, {"step": "f"}], together=2)
    await service.send_task_finalization({"task": "e"})
    assert await service.list_queues() == ["orchestration_task_finalizations", "orchestration_task_requests", "results"]
    bodies = [
        [json.loads(message.payload) for message in messages]
        for messages in (
            await service.receive_task_requests(5, 30),
            await service.receive_step_results(5, 30),
            await service.receive_task_finalizations(5, 30),
        )
    ]
    assert bodies == [[{"name": "a"}], [{"step": "b"}, {"steps": ["c", "d"]}, {"step": "f"}], [{"task": "e"}]]


@given(st.uuids(), st.uuids())
def test_a_hint_survives_its_encoding(step: UUID, task: UUID) -> None:
    assert StepHint.decode(StepHint(step, task).encode()) == StepHint(step, task)


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"not json", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[" * 20000, "not JSON"),
        (b"5", "expected a JSON object, found int"),
        (b"{}", "'step_uuid' should be a UUID, found None"),
        (b'{"step_uuid": "x"}', "'step_uuid' should be a UUID, found 'x'"),
        (b'{"step_uuid": "00000000-0000-0000-0000-000000000000", "task_uuid": 1}', "'task_uuid' should be a UUID"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_what_is_no_hint_is_poison_with_a_reason(payload: bytes, reason: str) -> None:
    with pytest.raises(PoisonMessage, match=reason) as caught:
        StepHint.decode(payload)
    assert caught.value.payload == payload


@given(st.binary() | st.text().map(str.encode))
def test_no_payload_breaks_the_decoder(payload: bytes) -> None:
    with pytest.raises(PoisonMessage):
        StepHint.decode(payload)
