"""Submissions within handlers: a child of the step, the same one in each attempt, whoever runs it and by what."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

import tasker
from tasker.errors import RetryableError, TaskTooDeep, UsageError
from tasker.execution.settings import WorkerSettings
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.services.submission.registered import TemplateSubmission
from tasker.services.submission.submit import Submission, SubmissionResult
from tasker.settings.execution import Execution
from tasker.template import compile_text
from tasker.template.plan import Plan

PARENT = """
name: parent
namespace: family
version: 1.0.0
steps:
  - name: start
    handler: starts
    retry: {max_attempts: 3, backoff: none}
"""
CHILD = """
name: child
namespace: family
version: {version}
{more}
steps:
  - {{name: grow, handler: grows}}
"""
TRACE = "00-11111111111111111111111111111111-2222222222222222-01"


def child(version: str = "1.0.0", more: str = "") -> Plan:
    (plan,) = compile_text(CHILD.format(version=version, more=more)).plans
    return plan


def parent() -> Plan:
    (plan,) = compile_text(PARENT).plans
    return plan


def rows(url: str, query: str, *params: Any) -> list[Any]:
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(query.encode(), params).fetchall()


def children(url: str, task: str) -> list[str]:
    query = "select child_uuid::text from tasker.task_links where parent_task = %s order by 1"
    return [name for (name,) in rows(url, query, task)]


def result(report: Any) -> Any:
    """What the handler returned, if that was no object."""
    return report.results["start"]["result"]


@pytest.fixture
async def app(database_url: str) -> AsyncIterator[tasker.App]:
    async with tasker.App(database_url, registry=HandlerRegistry()) as running:
        yield running


async def run(app: tasker.App, handler: Callable[..., Any], **options: Any) -> Any:
    """Run a task whose only step has this handler."""
    app.registry.register("starts", handler)
    app.registry.register("grows", lambda: {})
    return await app.run(parent(), timeout=60, **options)


async def test_a_repeated_attempt_finds_the_child_of_the_first_one(app: tasker.App, database_url: str) -> None:
    answers: list[SubmissionResult] = []

    async def starts(context: Any) -> Any:
        answers.append(await app.submit(child("1.0.0" if not answers else "1.1.0"), {"n": 1}))
        if context.retry_count < 2:
            raise RetryableError("again")
        return {"child": answers[-1].task_uuid}

    report = await run(app, starts, traceparent=TRACE)

    assert [answer.created for answer in answers] == [True, False, False]
    assert children(database_url, report.task_uuid) == [report.results["start"]["child"]]
    query = "select correlation_id::text, parent_correlation_id::text, trace->>'traceparent' from tasker.task_details"
    ((own, above, trace),) = rows(database_url, f"{query} where task_uuid = %s", answers[0].task_uuid)
    assert (own, above, trace) == (answers[0].task_uuid, report.task_uuid, TRACE)


async def test_equal_submissions_are_two_children_only_with_keys(app: tasker.App, database_url: str) -> None:
    async def starts() -> Any:
        one = [await app.submit(child(), {"n": 1}) for _ in range(2)]
        many = await app.submit_many(child(), [{"n": 1}, Submission({"n": 1}, key="a"), Submission({"n": 2}, key="a")])
        run_again = await app.submissions.submit(TemplateSubmission("family", "child", None, Submission({"n": 1})))
        return [[answer.task_uuid for answer in answers] for answers in (one, many, [run_again])]

    report = await run(app, starts)
    one, many, (again,) = result(report)

    assert one[0] == one[1] == many[0] == again
    assert many[1] == many[2] != one[0], "with a key the input does not count"
    assert len(children(database_url, report.task_uuid)) == 2


async def test_each_step_has_children_of_its_own_under_any_strategy(app: tasker.App, database_url: str) -> None:
    strict, asks = child("1.0.0"), child("2.0.0", "identity_strategy: caller_provided")

    async def starts() -> Any:
        return [(await app.submit(plan, {"n": 1})).created for plan in (strict, asks)]

    first, second = await run(app, starts), await run(app, starts)

    assert (result(first), result(second)) == ([True, False], [True, False])
    await app.submit(strict, {"n": 1})
    with pytest.raises(tasker.errors.DuplicateTask):
        await app.submit(strict, {"n": 1})


async def test_an_idempotency_key_is_shared_by_all_steps_and_links_the_first(
    app: tasker.App, database_url: str
) -> None:
    async def starts() -> Any:
        return (await app.submit(child(), {}, idempotency_key="k", on_duplicate="return")).task_uuid

    first, second = await run(app, starts), await run(app, starts)

    assert first.results == second.results
    assert children(database_url, first.task_uuid) == [result(first)]
    assert children(database_url, second.task_uuid) == []


async def test_handlers_in_threads_submit_with_a_blocking_app(app: tasker.App, database_url: str) -> None:
    with tasker.SyncApp(database_url, work=False) as blocking:

        def starts() -> Any:
            made = [blocking.submit(child(), {"n": 1}), blocking.submit(child(), {"n": 1})]
            with psycopg.connect(database_url) as connection:
                made += [blocking.submit_in(connection, child(), {"n": 1})]
                made += [tasker.submit_in(connection, child(), {"n": 2})]
                made += [tasker.submit_in(connection, child(), {"n": 2})]
            return [answer.task_uuid for answer in made]

        report = await run(app, starts)

    made = result(report)
    assert made[0] == made[1] == made[2] != made[3] == made[4]
    assert set(children(database_url, report.task_uuid)) == set(made)


async def test_a_thread_that_a_handler_starts_is_outside_of_it(app: tasker.App, database_url: str) -> None:
    with tasker.SyncApp(database_url, work=False) as blocking, ThreadPoolExecutor(1) as threads:

        def starts() -> Any:
            return threads.submit(lambda: blocking.submit(child(), {}).task_uuid).result()

        report = await run(app, starts)
        with pytest.raises(UsageError, match="not within a handler"):
            blocking.submit(child(), {}, key="x")

    assert children(database_url, report.task_uuid) == []


async def test_a_line_of_tasks_ends_at_its_depth(database_url: str) -> None:
    settings = WorkerSettings(limits=Execution(max_task_depth=2))
    ends: list[str] = []
    async with tasker.App(database_url, registry=HandlerRegistry(), settings=settings) as app:

        async def starts(context: Any) -> Any:
            try:
                await app.submit(parent(), {})
            except TaskTooDeep as error:
                ends.append(str(error))
            return {}

        app.registry.register("starts", starts)
        first = await app.run(parent(), {}, timeout=60)
        (second,) = children(database_url, first.task_uuid)
        await app.wait(second, timeout=60)
        (third,) = children(database_url, second)
        await app.wait(third, timeout=60)

    assert (len(ends), children(database_url, third)) == (1, [])
    assert "more than 2 tasks below the first" in ends[0]


@pytest.mark.parametrize("key", ["", " ", 7, "x" * 2000, "a\0b"])
async def test_an_invalid_key_is_refused(app: tasker.App, key: Any) -> None:
    async def starts() -> Any:
        with pytest.raises(tasker.errors.TaskerError) as refused:
            await app.submit(child(), {}, key=key)
        with pytest.raises(UsageError, match="found both"):
            await app.submit(child(), {}, key="x", idempotency_key="y")
        return str(refused.value)

    report = await run(app, starts)

    assert result(report).startswith("key: expected")


async def test_parent_and_children_are_read_in_pages(app: tasker.App) -> None:
    async def starts() -> Any:
        return [(await app.submit(child(), {"n": n})).task_uuid for n in range(3)]

    report = await run(app, starts)
    made = sorted(result(report))
    for task in made:
        await app.wait(task, timeout=60)

    first = await app.children(report.task_uuid, limit=2)
    second = await app.children(report.task_uuid, after=first.next_after, limit=2)
    below = await app.children(made[0])

    assert [row.task_uuid for row in (*first.children, *second.children)] == made
    assert (first.counts, first.steps, first.next_after, second.next_after) == (
        {"complete": 3}, {"start": 3}, made[1], None
    )  # fmt: skip
    assert (below.depth, below.children, below.counts) == (1, [], {})
    assert below.parent is not None
    assert (below.parent.task_uuid, below.parent.step, below.parent.status) == (report.task_uuid, "start", "complete")
    assert (await app.children(report.task_uuid, step="other")).children == []
    read = await app.tasks.report(made[0])
    assert (read.parent_task_uuid, read.parent_step_uuid) == (report.task_uuid, below.parent.step_uuid)
    with pytest.raises(tasker.errors.TaskNotFound):
        await app.children("0190b0c0-0000-7000-8000-000000000000")


async def test_who_is_limited_to_namespaces_sees_no_parent_or_child_of_others(app: tasker.App) -> None:
    async def starts() -> Any:
        return (await app.submit(child(), {})).task_uuid

    report = await run(app, starts)
    below = result(report)

    hidden = {"namespaces": ["other"]}
    assert (await app.tasks.children(report.task_uuid, **hidden)).counts == {}
    assert (await app.tasks.children(report.task_uuid, tenants=["acme"])).children == []
    family = await app.tasks.children(below, **hidden)
    assert (family.parent, family.depth) == (None, 1)
    assert (await app.tasks.children(below, tenants=["acme"])).parent is None
