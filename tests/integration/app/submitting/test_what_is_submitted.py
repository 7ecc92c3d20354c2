"""What is submitted is checked before anything is asked of the database: each mistake is the answer to its own task."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import psycopg
import pytest

import tasker
from tasker.errors import InputInvalid, NotStorable, TaskerError, UsageError
from tasker.services.submission.registered import TemplateSubmission
from tasker.services.submission.submit import Submission, SubmissionResult
from tasker.template import compile_text
from tasker.template.plan import Plan

ANYTHING = "{name: anything, namespace: caller, version: 1, steps: [{name: greet, handler: greet}]}"
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
    requests = [Submission({"name": "a"}), Submission({"name": "b"}, **option), Submission({"name": "c"})]
    orders = [TemplateSubmission(plan.namespace, plan.name, None, request) for request in requests]
    answers = app.submissions.submit_many(orders)
    assert [isinstance(answer, SubmissionResult) for answer in answers] == [True, False, True]
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


NO_OBJECTS: list[Any] = [[], 0, "", False, ["a"]]


@pytest.mark.parametrize("given", NO_OBJECTS, ids=repr)
def test_an_input_that_is_no_object_is_refused_also_where_it_is_empty(app: tasker.SyncApp, given: Any) -> None:
    anything = compile_text(ANYTHING).plans[0]
    app.submit(anything)
    with psycopg.connect(app.database_url) as connection:
        calls: list[Callable[[], object]] = [
            lambda: app.submit(anything, given),
            lambda: app.run(anything, given),
            lambda: app.submit_in(connection, anything, given),
            lambda: tasker.submit_in(connection, anything, given),
        ]
        for call in calls:
            with pytest.raises(InputInvalid, match="expected an object"):
                call()
    with pytest.raises(UsageError, match="context: expected a JSON object"):
        app.requests.request("caller/anything", given)


def test_any_mapping_is_an_input(app: tasker.SyncApp, plan: Plan) -> None:
    given = MappingProxyType({"name": "Ada"})
    first = app.submit(plan, given)
    assert app.submit(plan, {"name": "Ada"}, on_duplicate="return").task_uuid == first.task_uuid
    assert app.tasks.report(first.task_uuid).context == {"name": "Ada"}
    assert app.requests.request("caller/greeting", given)


ODD_NAMES: dict[str, Callable[[tasker.SyncApp], object]] = {
    "half of a pair in a target": lambda app: app.submit("caller/\ud800", {}),
    "NUL in a target": lambda app: app.submit("caller/\0", {}),
    "half of a pair in a request": lambda app: app.requests.request("caller/\ud800", {}),
    "a long target": lambda app: app.submit("x" * 5_000, {}),
    "half of a pair in a pause": lambda app: app.pause("\ud800"),
    "NUL in a pause": lambda app: app.pause(template="caller/\0"),
    "half of a pair in a resumption": lambda app: app.resume(queue="\ud800"),
    "half of a pair in a tag": lambda app: app.tasks.list(tags=["\ud800"]),
    "NUL in the namespace of a list": lambda app: app.tasks.list(namespace="\0"),
}


@pytest.mark.parametrize("call", ODD_NAMES.values(), ids=ODD_NAMES)
def test_a_name_that_nothing_can_have_is_refused_as_such(
    app: tasker.SyncApp, call: Callable[[tasker.SyncApp], object]
) -> None:
    with pytest.raises(UsageError) as caught:
        call(app)
    assert len(str(caught.value)) < 300


def test_a_long_target_is_refused_in_the_caller_s_transaction_too(app: tasker.SyncApp) -> None:
    with psycopg.connect(app.database_url) as connection, pytest.raises(UsageError, match="cannot be read"):
        tasker.submit_in(connection, "x" * 5_000)


def test_an_order_of_a_template_that_none_can_be_holds_up_no_other(app: tasker.SyncApp, plan: Plan) -> None:
    app.submit(plan, {"name": "first"})
    orders = [
        TemplateSubmission(plan.namespace, name, None, Submission({"name": "a"}))
        for name in ("\ud800", "\0", plan.name)
    ]
    answers = app.submissions.submit_many(orders)
    assert [type(answer) for answer in answers] == [UsageError, UsageError, SubmissionResult]


def test_texts_as_long_as_an_index_takes_are_kept(app: tasker.SyncApp, plan: Plan) -> None:
    longest = "".join(map(chr, range(0x4E00, 0x4E00 + 866)))  # 2,598 bytes, which cannot be compressed much
    options: Any = {"initiator": longest, "source_system": longest, "tags": [longest], "reason": longest * 5}
    task = app.submit(plan, {"name": "a"}, **options).task_uuid
    report = app.tasks.report(task)
    assert list(report.tags) == [longest]
