"""What a process remembers of templates: others register other content, and databases go back to earlier moments."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest

import tasker
from tasker.errors import TemplateError, UsageError
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.services.submission.submit import Submission
from tasker.step_handler import step_handler
from tasker.template import compile_text
from tasker.template.plan import Plan

TEMPLATE = """
name: {name}
namespace_name: kept
version: "1.0.0"
steps:
  - {{name: only, handler: kept.{handler}}}
"""
CUT = """select pg_terminate_backend(pid) from pg_stat_activity
  where datname = current_database() and pid <> pg_backend_pid()"""
TABLES = "tasker.named_tasks, tasker.templates, tasker.template_steps, tasker.template_edges"


def plan(handler: str, name: str = "one") -> Plan:
    (made,) = compile_text(TEMPLATE.format(name=name, handler=handler)).plans
    return made


def registry() -> HandlerRegistry:
    found = HandlerRegistry()
    for name in ("first", "second"):
        found.register(f"kept.{name}", step_handler(name)(_named(name))._handler_class)
    return found


def _named(name: str) -> Any:
    async def handler(context: Any) -> dict[str, Any]:
        return {"by": name}

    return handler


@pytest.fixture
async def app(database_url: str) -> AsyncIterator[tasker.App]:
    async with tasker.App(database_url, registry=registry()) as running:
        yield running


@pytest.fixture
async def other(database_url: str) -> AsyncIterator[tasker.App]:
    async with tasker.App(database_url, registry=registry(), work=False) as running:
        yield running


async def current(app: tasker.App, name: str = "one") -> str:
    return (await app.plans.find("kept", name, "1.0.0")).plan.steps[0].handler.callable


def forget_templates(url: str, *, cut: bool = False) -> None:
    """As a server that has lost the last commits, or a database that was made anew: identifiers begin again."""
    with psycopg.connect(url) as connection:
        connection.execute(f"truncate {TABLES} restart identity cascade".encode())
        if cut:
            connection.execute(CUT)


async def test_registering_what_was_registered_before_makes_it_the_current_one_again(
    app: tasker.App, other: tasker.App
) -> None:
    await app.plans.register(plan("first"))
    await other.plans.register(plan("second"), force=True)
    await app.plans.register(plan("first"), force=True)

    assert await current(other) == "kept.first"


async def test_registering_is_refused_while_others_have_registered_other_content(
    app: tasker.App, other: tasker.App
) -> None:
    await app.plans.register(plan("first"))
    await other.plans.register(plan("second"), force=True)
    with pytest.raises(TemplateError, match="other content"):
        await app.plans.register(plan("first"))

    assert await current(app) == "kept.second"


async def test_submitting_what_is_known_leaves_the_current_one_as_it_is(app: tasker.App, other: tasker.App) -> None:
    """Two releases of a program that submit side by side do not register against each other."""
    await app.run(plan("first"), timeout=60)
    await other.plans.register(plan("second"), force=True)
    report = await app.run(plan("first"), timeout=60)

    assert report.results == {"only": {"by": "first"}}
    assert await current(app) == "kept.second"


@pytest.mark.parametrize("after", ["nothing", "another in its place"])
async def test_a_submission_after_the_database_has_forgotten_its_template_is_of_that_template(
    app: tasker.App, other: tasker.App, database_url: str, after: str
) -> None:
    assert (await app.run(plan("first"), timeout=60)).results == {"only": {"by": "first"}}
    forget_templates(database_url)
    if after == "another in its place":
        await other.plans.register(plan("second", "two"))
    one = await app.submit(plan("first"), {"n": 1})
    (many,) = await app.submit_many(plan("first"), [Submission({"n": 2})])

    for submitted in (one, many):
        assert not isinstance(submitted, Exception)
        report = await app.tasks.report(submitted.task_uuid)
        assert (report.template, [step.handler for step in report.steps.values()]) == ("one", ["kept.first"])


async def test_a_name_that_is_found_in_a_database_that_was_made_anew_is_what_it_holds_now(
    app: tasker.App, other: tasker.App, database_url: str
) -> None:
    await app.plans.register(plan("first"))
    forget_templates(database_url)
    await other.plans.register(plan("second", "two"))

    assert await current(app, "two") == "kept.second"


async def test_a_worker_runs_the_template_that_has_the_identifier_of_another_one_now(
    app: tasker.App, other: tasker.App, database_url: str
) -> None:
    await app.run(plan("first"), timeout=60)
    forget_templates(database_url, cut=True)
    submitted = await other.submit(plan("second", "two"))
    report = await app.wait(submitted.task_uuid, timeout=60)

    assert report.results == {"only": {"by": "second"}}


async def test_a_callers_transaction_finds_its_template_again_the_second_time(
    app: tasker.App, database_url: str
) -> None:
    await app.plans.register(plan("first"))
    forget_templates(database_url)
    with psycopg.connect(database_url) as connection:
        with pytest.raises(UsageError, match="has no template"):
            await app.submit_in(connection, plan("first"))
        submitted = await app.submit_in(connection, plan("first"))

    assert (await app.wait(submitted.task_uuid, timeout=60)).results == {"only": {"by": "first"}}
