"""Registered templates over HTTP."""

from __future__ import annotations

import httpx
import pytest

from tasker.api.shapes.templates import (
    RegistrationResponse,
    TemplateDetail,
    TemplateGraph,
    TemplateListResponse,
    TemplateValidationResponse,
)
from tests.integration.api.test_errors import problem

ORDERS = "/v1/templates/shop/orders/1.0.0"
FRESH = """
name: fresh
namespace: lab
version: 1.0.0
steps:
  - {name: a, handler: lab.a}
  - {name: b, dependencies: [a], handler: lab.b}
"""


async def test_the_list_has_every_template_and_counts_namespaces(client: httpx.AsyncClient) -> None:
    found = TemplateListResponse.model_validate(
        (await client.get("/v1/templates", params={"namespace": "shop"})).json()
    )

    assert [(each.name, each.version, each.step_count) for each in found.templates] == [
        ("named", "1.0.0", 1),
        ("orders", "1.0.0", 2),
    ]
    assert [(each.name, each.template_count) for each in found.namespaces] == [("shop", 2)]
    assert (await client.get("/v1/templates", params={"namespace": "x"})).json()["total_count"] == 0


async def test_a_template_is_sent_once_to_a_client_that_keeps_it(client: httpx.AsyncClient) -> None:
    answer = await client.get(ORDERS)
    found = TemplateDetail.model_validate(answer.json())

    assert [(step.name, step.handler) for step in found.steps] == [("check", "shop.check"), ("charge", "shop.charge")]
    assert found.configuration["input_schema"]["required"] == ["amount"]
    again = await client.get(ORDERS, headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    other = await client.get(ORDERS, headers={"If-None-Match": '"other", W/"more"'})
    assert other.status_code == 200


async def test_a_graph_is_data_or_a_drawing(client: httpx.AsyncClient) -> None:
    graph = TemplateGraph.model_validate((await client.get(f"{ORDERS}/graph")).json())

    assert [(edge.from_step, edge.to_step) for edge in graph.edges] == [("check", "charge")]
    for form, part in (("mermaid", "flowchart"), ("dot", "digraph"), ("text", "check")):
        drawn = await client.get(f"{ORDERS}/graph", params={"format": form})
        assert drawn.headers["content-type"].startswith("text/plain")
        assert part in drawn.text
    problem(await client.get(f"{ORDERS}/graph", params={"format": "png"}), 400, "BAD_REQUEST", "malformed_request")


async def test_a_text_is_checked_and_then_registered(client: httpx.AsyncClient) -> None:
    checked = await client.post("/v1/templates", json={"yaml": FRESH, "validate_only": True})
    assert checked.status_code == 200
    assert not RegistrationResponse.model_validate(checked.json()).registered
    problem(await client.get("/v1/templates/lab/fresh/1.0.0"), 404, "NOT_FOUND", "template_not_found")

    made = await client.post("/v1/templates", json={"yaml": FRESH})
    assert made.status_code == 201
    assert [each.name for each in RegistrationResponse.model_validate(made.json()).templates] == ["fresh"]
    assert (await client.get("/v1/templates/lab/fresh/1.0.0")).status_code == 200
    changed = FRESH.replace("lab.b", "lab.c")
    problem(await client.post("/v1/templates", json={"yaml": changed}), 422, "BAD_REQUEST", "template_error")
    assert (await client.post("/v1/templates", json={"yaml": changed, "force": True})).status_code == 201


async def test_a_wrong_text_is_refused_with_every_problem_and_its_place(client: httpx.AsyncClient) -> None:
    text = FRESH.replace("dependencies: [a]", "dependencies: [c]").replace("handler: lab.a", "handlr: lab.a")

    found = problem(await client.post("/v1/templates", json={"yaml": text}), 422, "BAD_REQUEST", "template_error")

    places = [each if isinstance(each, dict) else each.model_dump() for each in found.errors or []]
    assert {each["line"] for each in places} == {6, 7}


@pytest.mark.parametrize("text", ["", "a: [", "!!python/object:os.system {}", "- 1\n", "a: &a [*a]", "x" * 100_000])
async def test_a_text_that_is_no_template_is_refused(client: httpx.AsyncClient, text: str) -> None:
    answer = await client.post("/v1/templates", json={"yaml": text})

    assert answer.status_code in (400, 422), answer.text


async def test_a_template_is_valid_where_live_workers_have_its_handlers(client: httpx.AsyncClient) -> None:
    await client.post("/v1/templates", json={"yaml": FRESH.replace("fresh", "unserved")})

    served = TemplateValidationResponse.model_validate((await client.post(f"{ORDERS}/validate")).json())
    assert (served.valid, served.step_handlers) == (True, ["shop.charge", "shop.check"])
    unserved = (await client.post("/v1/templates/lab/unserved/1.0.0/validate")).json()
    unknown = await client.post("/v1/templates/lab/unknown/1.0.0/validate")
    problem(unknown, 404, "NOT_FOUND", "template_not_found")
    assert unserved["errors"][0] == "no live worker of lab has the handler lab.a"
