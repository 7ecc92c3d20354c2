"""Templates are compared with the registered ones and registered together, or none of them is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import psycopg
import pytest
import pytest_asyncio

import tasker
from tasker.errors import RegistryChanged, TemplateError
from tasker.views.deployments import Deployment

CHECKOUT = """
name: checkout
namespace: shop
version: 1.0.0
input_schema: {type: object, required: [id], properties: {id: {type: string}, tier: {type: string}}}
schedules: [{name: nightly, cron: "0 3 * * *", context: {id: x}}]
steps:
  - {name: quote, handler: shop.quote}
  - {name: charge, handler: shop.charge, dependencies: [quote]}
"""
REFUND = "name: refund\nnamespace: shop\nversion: 1.0.0\nsteps: [{name: pay, handler: shop.pay}]\n"
BOTH = f"---\n{CHECKOUT}---\n{REFUND}"
NEXT = (
    CHECKOUT.replace("1.0.0", "1.1.0")
    .replace("required: [id]", "required: [id, tier]")
    .replace("id: x", "id: x, tier: y")
)
WORKER = """
insert into tasker.workers (worker_uuid, kind, host, pid, version, namespaces, concurrency, beat_at, lease_until,
  started_at)
values ('01900000-0000-7000-8000-000000000001', 'worker', 'h', 1, '0', '{shop}', 4, now(), now() + interval '1 h',
  now());
insert into tasker.worker_callables values ('01900000-0000-7000-8000-000000000001', '{shop.quote,shop.pay}')
"""


@pytest_asyncio.fixture
async def app(database_url: str) -> AsyncIterator[tasker.App]:
    async with tasker.App(database_url, work=False) as opened:
        yield opened


async def applied(app: tasker.App, text: str, **options: bool) -> Deployment:
    deployment = await app.deployments.plan(text, **options)
    await app.deployments.apply(text, deployment.token, **options)
    return deployment


async def registered(app: tasker.App) -> list[str]:
    return [f"{row['name']}:{row['version']}" for row in await app.plans.registered()]


def actions(deployment: Deployment) -> dict[str, str]:
    return {f"{each.name}:{each.version}": each.action for each in deployment.templates}


async def test_a_second_apply_is_empty(app: tasker.App) -> None:
    first = await applied(app, BOTH)
    assert (first.has_changes, actions(first)) == (True, {"checkout:1.0.0": "new", "refund:1.0.0": "new"})
    assert await registered(app) == ["checkout:1.0.0", "refund:1.0.0"]
    second = await app.deployments.plan(BOTH)
    assert (second.has_changes, actions(second)) == (
        False,
        {"checkout:1.0.0": "unchanged", "refund:1.0.0": "unchanged"},
    )


async def test_a_new_version_is_compared_with_the_last_one(app: tasker.App) -> None:
    await applied(app, BOTH)
    plan = await app.deployments.plan(NEXT)
    assert actions(plan) == {"checkout:1.1.0": "changed", "refund:1.0.0": "gone"}
    template = plan.templates[0]
    assert (template.compared_with, template.advised_version) == ("1.0.0", "2.0.0")
    assert template.schedules == ["nightly changes"]
    (breaking,) = [change for change in template.changes if change.breaking]
    assert (breaking.code, breaking.line) == ("input_schema_narrowed", 5)


async def test_a_version_with_other_content_needs_force(app: tasker.App) -> None:
    await applied(app, CHECKOUT)
    other = CHECKOUT.replace("shop.charge", "shop.take")
    plan = await app.deployments.plan(other)
    assert actions(plan) == {"checkout:1.0.0": "refused"}
    with pytest.raises(TemplateError, match="registered with other content"):
        await app.deployments.apply(other, plan.token)
    assert actions(await applied(app, other, force=True)) == {"checkout:1.0.0": "replaced"}
    assert not (await app.deployments.plan(other)).has_changes


async def test_all_templates_are_registered_or_none(app: tasker.App) -> None:
    await applied(app, REFUND)
    other = f"---\n{CHECKOUT}---\n{REFUND.replace('shop.pay', 'shop.other')}"
    plan = await app.deployments.plan(other)
    with pytest.raises(TemplateError):
        await app.deployments.apply(other, plan.token)
    unknown = CHECKOUT.replace("handler: shop.charge", "limits: [nothing], handler: shop.charge")
    plan = await app.deployments.plan(unknown)
    with pytest.raises(TemplateError, match="T126"):
        await app.deployments.apply(unknown, plan.token)
    assert await registered(app) == ["refund:1.0.0"]


async def test_a_refusal_takes_back_what_came_before_it(app: tasker.App) -> None:
    await applied(app, REFUND)
    compiled = await app.template_texts.compiled(f"---\n{CHECKOUT}---\n{REFUND.replace('shop.pay', 'shop.other')}")
    token = (await app.deployments.plan(BOTH)).token
    named = {"namespaces": ["shop", "shop"], "names": ["checkout", "refund"]}
    answer = await app.plans.register_all(compiled.plans, token.partition(":")[2], named)
    assert (answer["place"], answer["refusal"]["refused"]) == (1, True)
    assert await registered(app) == ["refund:1.0.0"]


async def test_a_plan_is_outdated_by_a_registration_and_not_by_tasks(app: tasker.App) -> None:
    await applied(app, CHECKOUT)
    early, late = await app.deployments.plan(NEXT), await app.deployments.plan(NEXT)
    await app.submit("shop/checkout", {"id": "1"})
    await app.deployments.apply(NEXT, early.token)
    with pytest.raises(RegistryChanged, match="the registered templates have changed since the plan"):
        await app.deployments.apply(NEXT, late.token)
    with pytest.raises(RegistryChanged, match="other templates or options"):
        await app.deployments.apply(REFUND, early.token)


async def test_of_two_applies_at_once_one_is_refused(app: tasker.App) -> None:
    texts = [CHECKOUT, CHECKOUT.replace("1.0.0", "2.0.0")]
    plans = [await app.deployments.plan(text) for text in texts]
    answers = await asyncio.gather(
        *(app.deployments.apply(text, plan.token) for text, plan in zip(texts, plans, strict=True)),
        return_exceptions=True,
    )
    assert sorted(type(answer).__name__ for answer in answers) == ["Registration", "RegistryChanged"]
    assert len(await registered(app)) == 1


async def test_the_census_counts_open_tasks_of_each_version(app: tasker.App, database_url: str) -> None:
    await applied(app, CHECKOUT)
    for number in range(3):
        await app.submit("shop/checkout", {"id": str(number)})
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(WORKER)
        connection.execute("update tasker.tasks set state = 'complete', complete = true where task_uuid = "
                           "(select min(task_uuid::text)::uuid from tasker.tasks)")  # fmt: skip
    plan = await app.deployments.plan(NEXT.replace("shop.quote", "shop.price"))
    (tasks,) = plan.open_tasks
    assert (tasks.version, tasks.tasks, tasks.current) == ("1.0.0", 2, True)
    assert [(step.name, step.handler, step.steps) for step in tasks.steps] == [
        ("quote", "shop.quote", 2),
        ("charge", "shop.charge", 2),
    ]
    assert [(each.template, list(each.steps), each.open_tasks) for each in plan.unserved] == [
        ("shop/checkout:1.1.0", ["quote"], False),
        ("shop/checkout:1.1.0", ["charge"], False),
        ("shop/checkout:1.0.0", ["charge"], True),
    ]


async def test_an_apply_is_recorded_with_its_change(app: tasker.App) -> None:
    await applied(app, CHECKOUT)
    (action,) = await app.operator_log.list()
    assert action.endpoint == "App.deployments.apply"


async def test_an_apply_that_is_cut_off_leaves_all_or_none(app: tasker.App) -> None:
    """At whatever moment: the request is cancelled after more and more turns of the event loop."""
    seen = set()
    for turns in range(0, 24, 4):
        text = BOTH.replace("namespace: shop", f"namespace: cut_{turns}")
        token = (await app.deployments.plan(text)).token
        applying = asyncio.ensure_future(app.deployments.apply(text, token))
        for _ in range(turns):
            await asyncio.sleep(0)
        applying.cancel()
        await asyncio.gather(applying, return_exceptions=True)
        plan = await app.deployments.plan(text)
        seen.add(frozenset(template.action for template in plan.templates))
        await app.deployments.apply(text, plan.token)
        assert not (await app.deployments.plan(text)).has_changes
    assert seen <= {frozenset({"new"}), frozenset({"unchanged"})}
