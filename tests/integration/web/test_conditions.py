"""Conditions, decisions and inputs of a step on the page of its task."""

from __future__ import annotations

from html import unescape

import tasker
from tasker.template import compile_text
from tests.integration.web.conftest import Site

CONDITIONS = """
name: conditions
namespace: shop
version: 1.0.0
input_schema: {type: object, required: [amount], properties: {amount: {type: integer}}}
steps:
  - name: route
    rules:
      - {when: input.amount > 5, then: [large], because: "amount ${input.amount}"}
      - {else: []}
  - {name: large, handler: shop.charge, dependencies: [route]}
  - {name: each, handler: shop.charge, when: input.amount > 0, for_each: {in: "[input.amount]", as: number}}
"""


async def test_drawer_shows_conditions_decisions_and_inputs(app: tasker.App, site: Site) -> None:
    plan = await app.plan(compile_text(CONDITIONS).plans[0])
    await app.plans.register(plan, force=True)
    amount = 7
    task = (await app.submit("shop/conditions", {"amount": amount})).task_uuid
    await app.wait(task)
    route = unescape(await site.text(f"tasks/{task}", step="route"))
    assert "if input.amount > 5 then large, because: amount ${input.amount}" in route
    assert f"large: amount {amount}" in route
    each = unescape(await site.text(f"tasks/{task}", step="each_001"))
    assert "input.amount > 0" in each
    assert "number in [input.amount]" in each
    assert "Inputs of its handler" in each
    assert f'"number": {amount}' in each
