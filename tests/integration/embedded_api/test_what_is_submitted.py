"""What is submitted is checked before anything is asked of the database: each mistake is the answer to its own task."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

import tasker
from tasker.contracts.plan import Plan
from tasker.errors import NotStorable, TaskerError, UsageError
from tasker.services.server.bulk_submission import Order
from tasker.services.submitting.submission import Request, Submitted

ODD: list[dict[str, Any]] = [
    {"reason": "a\0"},
    {"tags": ["\ud800"]},
    {"correlation_id": "order-17"},
    {"initiator": "x" * 3_000_000},
    {"idempotency_key": 5},
    {"tags": None},
]


@pytest.mark.parametrize("option", ODD, ids=lambda option: repr(option)[:40])
def test_an_order_whose_option_does_not_fit_holds_up_no_other(
    app: tasker.SyncApp, plan: Plan, option: dict[str, Any]
) -> None:
    app.submit(plan, {"name": "first"})
    requests = [Request({"name": "a"}), Request({"name": "b"}, **option), Request({"name": "c"})]
    answers = app.submit_orders([Order(plan.namespace, plan.name, None, request) for request in requests])
    assert [isinstance(answer, Submitted) for answer in answers] == [True, False, True]
    assert isinstance(answers[1], (NotStorable, UsageError))
    assert next(iter(option)) in answers[1].message

    with pytest.raises(type(answers[1]), match="request 2 of 3: "):
        app.submit_many(plan, requests)


@pytest.mark.parametrize("option", ODD, ids=lambda option: repr(option)[:40])
def test_a_mistake_in_an_option_is_told_alike_in_the_caller_s_transaction_which_goes_on(
    app: tasker.SyncApp, plan: Plan, option: dict[str, Any]
) -> None:
    app.submit(plan, {"name": "first"})
    with psycopg.connect(app.database_url) as connection:
        for submit in (app.submit_in, tasker.submit_in):
            with pytest.raises(TaskerError) as caught:
                submit(connection, plan, {"name": "b"}, **option)
            assert isinstance(caught.value, (NotStorable, UsageError))
            assert not caught.value.retryable
        assert app.submit_in(connection, plan, {"name": "c"}).created


def test_texts_as_long_as_an_index_takes_are_kept(app: tasker.SyncApp, plan: Plan) -> None:
    longest = "".join(map(chr, range(0x4E00, 0x4E00 + 866)))  # 2,598 bytes, which cannot be compressed much
    options: Any = {"initiator": longest, "source_system": longest, "tags": [longest], "reason": longest * 5}
    task = app.submit(plan, {"name": "a"}, **options).task_uuid
    report = app.tasks.report(task)
    assert list(report.tags) == [longest]
