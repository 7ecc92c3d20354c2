"""`unique: while_running`: a submission with the key of a running task answers that task."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

import tasker
from tasker.errors import DuplicateTask, IdempotencyKeyReused, InputInvalid
from tasker.services.submission.registered import TemplateSubmission
from tasker.services.submission.submit import Submission, SubmissionResult
from tasker.template import compile_text
from tasker.template.plan import Plan

TEMPLATE = """
name: sync
namespace: crm
version: {version}
unique: {unique}
steps:
  - {{name: fetch, handler: nobody.serves_it}}
"""
BY_CUSTOMER = "{key: input.customer.id}"


@pytest.fixture
def app(database_url: str) -> Iterator[tasker.SyncApp]:
    """A program that runs no steps, so that its tasks stay open."""
    with tasker.SyncApp(database_url, work=False) as running:
        yield running


def compiled(unique: str = BY_CUSTOMER, version: str = "1.0.0") -> Plan:
    (plan,) = compile_text(TEMPLATE.format(unique=unique, version=version)).plans
    return plan


def customer(value: object, **more: object) -> dict[str, object]:
    return {"customer": {"id": value}, **more}


def test_a_second_submission_of_the_key_answers_the_running_task(app: tasker.SyncApp) -> None:
    plan = compiled()
    first = app.submit(plan, customer(7, run="a"))
    again = app.submit(plan, customer(7, run="b"))
    other = app.submit(plan, customer(8))

    assert (first.created, first.unique) == (True, False)
    assert again == SubmissionResult(first.task_uuid, 1, created=False, unique=True)
    assert other.created
    assert len(app.tasks.list()) == 2


@pytest.mark.parametrize("ended", ["cancelled", "pruned"])
def test_the_key_is_free_once_the_task_has_ended(app: tasker.SyncApp, ended: str) -> None:
    first = app.submit(compiled(), customer(7))
    app.tasks.cancel(first.task_uuid)
    if ended == "pruned":
        with psycopg.connect(app.database_url) as connection:
            connection.execute(
                """select tasker.prune_v1(jsonb_build_object('named_task_uuid', named_task_uuid, 'failed', troubled,
                'before', now() + interval '1 hour', 'steps', 1000)) from tasker.tasks"""
            )
            assert connection.execute("select count(*) from tasker.unique_keys").fetchone() == (0,)
    second = app.submit(compiled(), customer(7))

    assert second.created
    assert app.submit(compiled(), customer(7)).task_uuid == second.task_uuid


def test_all_versions_share_the_key_and_values_of_other_types_are_other_keys(app: tasker.SyncApp) -> None:
    first = app.submit(compiled(), customer(7))
    newer = app.submit(compiled(version="2.0.0"), customer(7.0))
    others = [app.submit(compiled(), customer(value)) for value in ("07", [7], {"b": 1, "a": 2}, "x" * 5000, True)]

    assert newer.task_uuid == first.task_uuid
    assert all(each.created for each in others)
    assert app.submit(compiled(), customer({"a": 2, "b": 1})).task_uuid == others[2].task_uuid


def test_without_a_key_one_task_of_the_template_runs(app: tasker.SyncApp) -> None:
    first = app.submit(compiled("while_running"), {"a": 1})
    assert app.submit(compiled("while_running"), {"a": 2}).task_uuid == first.task_uuid


@pytest.mark.parametrize("given", [{}, {"customer": {}}, {"customer": {"id": None}}, {"customer": 7}])
def test_an_input_without_a_value_of_the_key_is_refused(app: tasker.SyncApp, given: dict[str, object]) -> None:
    with pytest.raises(InputInvalid, match=r"\$\.customer\.id: .* `unique`"):
        app.submit(compiled(), given)
    assert app.tasks.list() == []


def test_each_of_many_in_one_transaction_is_answered(app: tasker.SyncApp) -> None:
    before = app.submit(compiled(), customer(1))
    requests = [Submission(customer(number, run=run)) for run, number in enumerate((2, 1, 2, 3))]
    two, one, again, three = app.submit_many(compiled(), requests)

    assert isinstance(two, SubmissionResult)
    assert isinstance(three, SubmissionResult)
    assert (two.created, three.created) == (True, True)
    assert one == SubmissionResult(before.task_uuid, 1, created=False, unique=True)
    assert again == SubmissionResult(two.task_uuid, 1, created=False, unique=True)


def test_registered_templates_and_callers_transactions_answer_alike(app: tasker.SyncApp) -> None:
    first = app.submit(compiled(), customer(7))
    order = TemplateSubmission("crm", "sync", None, Submission(customer(7)))
    with psycopg.connect(app.database_url) as connection:
        inside = app.submit_in(connection, compiled(), customer(7))
        module = tasker.submit_in(connection, compiled(), customer(7))
        own = app.submit_in(connection, compiled(), customer(8))
        same = app.submit_in(connection, compiled(), customer(8))
        connection.rollback()
    answers = [inside, module, app.submissions.submit(order), *app.submissions.submit_many([order])]

    assert answers == [SubmissionResult(first.task_uuid, 1, created=False, unique=True)] * 4
    assert same == SubmissionResult(own.task_uuid, 1, created=False, unique=True)
    assert app.submit(compiled(), customer(8)).created, "what was rolled back has no key"


def test_an_idempotency_key_goes_before_the_unique_key(app: tasker.SyncApp) -> None:
    first = app.submit(compiled(), customer(7), idempotency_key="k")
    with pytest.raises(DuplicateTask) as caught:
        app.submit(compiled(), customer(7), idempotency_key="k")
    with pytest.raises(IdempotencyKeyReused):
        app.submit(compiled(), customer(8), idempotency_key="k")

    assert caught.value.task_uuid == first.task_uuid
    assert app.submit(compiled(), customer(7), idempotency_key="other").unique


def test_the_same_input_may_run_again_where_no_strategy_is_written(app: tasker.SyncApp) -> None:
    assert compiled().identity_strategy == "always_unique"
    text = TEMPLATE.format(unique="while_running", version="1.0.0") + "identity_strategy: strict\n"
    assert compile_text(text).plans[0].identity_strategy == "strict"
