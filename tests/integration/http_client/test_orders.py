"""Many tasks through a server have the answers that they have beside the database."""

from __future__ import annotations

import tasker
from tasker.cli.place.http_fleet import HttpFleet
from tasker.client import HttpClient
from tasker.errors import TaskerError
from tasker.services.server.bulk_submission import Order
from tasker.services.submitting.submission import Request, Submitted


async def test_each_order_has_an_answer_of_its_own(app: tasker.App, client: HttpClient) -> None:
    fine = Order("shop", "orders", None, Request({"amount": 3}, idempotency_key="ordered", tags=["a"]))
    orders = [
        fine,
        Order("shop", "nothing", None, Request({})),
        Order("shop", "orders", None, Request({"amount": "x"})),
    ]
    through = HttpFleet(client)

    answers = await through.submit_orders(orders)
    beside = await app.submit_orders(orders, on_duplicate="return")

    assert isinstance(answers[0], Submitted)
    assert isinstance(beside[0], Submitted)
    assert (answers[0].task_uuid, answers[0].created) == (beside[0].task_uuid, True)
    for ours, theirs in zip(answers[1:], beside[1:], strict=True):
        assert isinstance(ours, TaskerError)
        assert type(ours) is type(theirs)
    (again,) = await through.submit_orders([fine], on_duplicate="return")
    assert again == beside[0]
