"""What a template means is what its author wrote; a fleet's defaults are pinned with a task when it is submitted."""

from __future__ import annotations

import json
from pathlib import Path

import psycopg
import pytest

import tasker
from tasker.app.configured import UNCONFIGURED, Configured
from tasker.clock import new_task_uuid
from tasker.db.connection import Connection
from tasker.engine.plans import PlanStore
from tasker.errors import TemplateError
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.services.submission.submit import Submission
from tasker.services.workflows.files import load_plans
from tasker.services.workflows.served import register_served
from tasker.template import compile_text
from tasker.template.plan import Plan, RetryPolicy
from tests.support.registered import submit_registered

TEMPLATE = """
name: pinned
namespace_name: pinned
version: "1.0.0"
steps:
  - {name: silent, handler: h}
  - {name: spoken, handler: h, retry: {max_attempts: 5}}
"""
SHORT, LONG = (Configured(retry=RetryPolicy(max_backoff_ms=seconds * 1000, multiplier=3.0)) for seconds in (60, 90))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "workflow.yaml"
    file.write_text(TEMPLATE)
    return file


async def serve(url: str, configuration: Configured, file: Path) -> None:
    """What a worker's start does with its templates. Raises `TemplateError` when one of them is refused."""
    connection = Connection(url)
    registry = HandlerRegistry()
    registry.register("h", lambda context: {})
    try:
        await register_served(configuration, registry, PlanStore(connection, configuration.retry), workflows=[file])
    finally:
        await connection.close()


async def submitted(url: str, configuration: Configured, target: str | Path) -> Plan:
    """The plan that a task is pinned to which this process submits."""
    async with tasker.App(url, work=False, configuration=configuration) as app:
        plan = await app.plan(target)
        task = await submit_registered(app, plan, Submission(idempotency_key=new_task_uuid()))
        return await app.plans.get(await app.tasks.template_id(task.task_uuid))


def limits(plan: Plan) -> dict[str, tuple[int, float]]:
    return {step.name: (step.retry.max_backoff_ms, step.retry.multiplier) for step in plan.steps}


async def test_processes_with_other_settings_serve_the_same_template(database_url: str, file: Path) -> None:
    for configuration in (SHORT, LONG, UNCONFIGURED, SHORT):
        await serve(database_url, configuration, file)
    file.write_text(TEMPLATE.replace("max_attempts: 5", "max_attempts: 6"))
    with pytest.raises(TemplateError, match="registered with other content"):
        await serve(database_url, SHORT, file)


@pytest.mark.parametrize("by_name", [True, False])
async def test_a_task_gets_the_defaults_of_who_submits_it(database_url: str, file: Path, by_name: bool) -> None:
    await serve(database_url, SHORT, file)
    target = "pinned/pinned" if by_name else file
    assert limits(await submitted(database_url, LONG, target)) == {"silent": (90_000, 3.0), "spoken": (30_000, 3.0)}
    assert limits(await submitted(database_url, SHORT, target))["silent"] == (60_000, 3.0)


@pytest.mark.parametrize("by_name", [True, False])
async def test_a_process_without_a_configuration_takes_the_defaults_of_the_fleet(
    database_url: str, file: Path, by_name: bool
) -> None:
    await serve(database_url, LONG, file)
    await serve(database_url, UNCONFIGURED, file)
    found = await submitted(database_url, UNCONFIGURED, "pinned/pinned" if by_name else file)
    assert limits(found)["silent"] == (90_000, 3.0)


async def test_a_task_in_flight_keeps_its_defaults_when_the_setting_changes(database_url: str, file: Path) -> None:
    async with tasker.App(database_url, work=False, configuration=SHORT) as app:
        task = (await submit_registered(app, await app.plan(file), Submission())).task_uuid
    await serve(database_url, LONG, file)
    async with tasker.App(database_url, work=False, configuration=LONG) as app:
        assert limits(await app.plan_of(task))["silent"] == (60_000, 3.0)


async def test_another_default_makes_no_version_the_newest(database_url: str, file: Path) -> None:
    await serve(database_url, SHORT, file)
    file.write_text(TEMPLATE.replace("1.0.0", "2.0.0"))
    await serve(database_url, SHORT, file)
    await submitted(database_url, LONG, "pinned/pinned:1.0.0")
    assert (await submitted(database_url, LONG, "pinned/pinned")).version == "2.0.0"


async def test_a_plan_of_a_release_that_lacked_a_key_has_the_same_content(database_url: str, file: Path) -> None:
    (plan,) = load_plans(file)
    older = json.loads(plan.to_json())
    for step in older["steps"]:
        del step["circuit_breaker"], step["system_dependency"]
    args = {"hash": "0" * 64, "content": plan.id.hash, "plan": older}
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("select tasker.register_template_v1(%s::jsonb)", (json.dumps(args),))
    for configuration in (SHORT, UNCONFIGURED):
        await serve(database_url, configuration, file)
        assert limits(await submitted(database_url, configuration, file))["silent"] == (60_000, 3.0)


def test_an_environment_is_another_content_where_it_overrides_something() -> None:
    overrides = "environments: {production: {steps: [{name: silent, timeout_seconds: 5}]}}"
    for text, same in ((TEMPLATE, True), (TEMPLATE + overrides, False)):
        plain, chosen = (compile_text(text, environment=name).plans[0] for name in (None, "production"))
        assert (plain.id == chosen.id) is same


@pytest.mark.parametrize(
    ("edit", "same"),
    [
        (("handler: h}", "handler: {callable: h, method: call}}"), True),
        (("handler: h}", "handler: h, on_worker_lost: retry}"), True),
        (("{max_attempts: 5}", "{max_attempts: 5, backoff_base_ms: 1000}"), True),
        (("handler: h}", "handler: h, retry: {max_attempts: 3}}"), False),
        (("handler: h}", "handler: h, lifecycle: {backoff_multiplier: 2.0}}"), False),
        (("{max_attempts: 5}", "{profile: transient, max_attempts: 5}"), False),
        (("handler: h}", "handler: h, timeout_seconds: 5}"), False),
        (("version", "description: other\nversion"), False),
    ],
)
def test_the_content_is_what_the_author_wrote_whatever_its_form(edit: tuple[str, str], same: bool) -> None:
    """A step that writes the language's defaults down inherits none of a fleet: that is another content."""
    first, second = compile_text(TEMPLATE).plans[0], compile_text(TEMPLATE.replace(*edit, 1)).plans[0]
    assert (first.id == second.id) is same
