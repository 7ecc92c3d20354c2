"""Registered templates over HTTP."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tasker.views.model import decode
from tasker.views.templates import Registration, TemplateDetail, TemplateGraph, TemplatePage, TemplateValidation
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
    found = decode(TemplatePage, (await client.get("/v1/templates", params={"namespace": "shop"})).json())

    assert [(each.name, each.version, each.step_count) for each in found.templates] == [
        ("named", "1.0.0", 1),
        ("orders", "1.0.0", 2),
    ]
    assert [(each.name, each.template_count) for each in found.namespaces] == [("shop", 2)]
    assert (await client.get("/v1/templates", params={"namespace": "x"})).json()["total_count"] == 0


MANY = "\n---".join(
    f"""
name: paged{number % 3}
namespace: many{number // 6}
version: 1.{number % 6 // 3}.0
steps: [{{name: a, handler: lab.a}}]
"""
    for number in range(12)
)
"""Two versions of three templates in two namespaces."""


def listed(body: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(each["namespace"], each["name"], each["version"]) for each in body["templates"]]


async def test_pages_of_the_list_join_to_all_of_it(client: httpx.AsyncClient) -> None:
    assert (await client.post("/v1/templates", json={"yaml": MANY})).status_code == 201
    whole = (await client.get("/v1/templates", params={"per_page": 500})).json()
    many = [each for each in listed(whole) if each[0].startswith("many")]
    assert many == [
        (f"many{space}", f"paged{name}", f"1.{version}.0")
        for space in (0, 1)
        for name in (0, 1, 2)
        for version in (1, 0)
    ]
    assert not whole["pagination"]["has_next"]
    assert whole["total_count"] == len(whole["templates"])

    pages, cursor = [], None
    while cursor or not pages:
        more = {"cursor": cursor} if cursor else {}
        pages.append((await client.get("/v1/templates", params={"per_page": 5, **more})).json())
        cursor = pages[-1]["pagination"]["next_cursor"]
        assert pages[-1]["total_count"] == whole["total_count"]
        assert pages[-1]["pagination"]["has_next"] == (cursor is not None)
        assert {each["name"] for each in pages[-1]["namespaces"]} == {each[0] for each in listed(pages[-1])}
    assert [row for page in pages for row in listed(page)] == listed(whole)
    assert {len(page["templates"]) for page in pages[:-1]} == {5}
    second = (await client.get("/v1/templates", params={"per_page": 5, "page": 1})).json()
    assert listed(second) == listed(pages[1])
    assert second["pagination"] == {
        "page": 1,
        "per_page": 5,
        "total_count": whole["total_count"],
        "total_pages": -(-whole["total_count"] // 5),
        "has_next": True,
        "has_previous": True,
        "next_cursor": pages[1]["pagination"]["next_cursor"],
    }


async def test_the_list_has_a_bounded_page_without_parameters(client: httpx.AsyncClient) -> None:
    texts = [FRESH.replace("fresh", f"one_of_many{number:02}") for number in range(60)]
    assert (await client.post("/v1/templates", json={"yaml": "---".join(texts)})).status_code == 201

    found = (await client.get("/v1/templates")).json()

    assert len(found["templates"]) == 50
    assert found["total_count"] > 60
    assert found["pagination"]["next_cursor"]


async def test_the_list_is_of_one_namespace_and_name(client: httpx.AsyncClient) -> None:
    await client.post("/v1/templates", json={"yaml": MANY})
    found = (await client.get("/v1/templates", params={"namespace": "many1", "name": "paged2"})).json()

    assert listed(found) == [("many1", "paged2", "1.1.0"), ("many1", "paged2", "1.0.0")]
    assert found["namespaces"] == [{"name": "many1", "description": None, "template_count": 2}]
    both = (await client.get("/v1/templates", params={"name": "paged2"})).json()
    assert (both["total_count"], [each["template_count"] for each in both["namespaces"]]) == (4, [2, 2])


@pytest.mark.parametrize(
    "cursor", ["x", "e30", "WzFd", "WyJhIiwiYiIsImMiLCJkIl0", "WyJcdTAwMDAiLCJiIiwiYyIsIjIwMjYtMDEtMDEiXQ"]
)
async def test_a_cursor_of_another_list_is_refused(client: httpx.AsyncClient, cursor: str) -> None:
    problem(await client.get("/v1/templates", params={"cursor": cursor}), 400, "BAD_REQUEST", "usage_error")


async def test_a_template_is_sent_once_to_a_client_that_keeps_it(client: httpx.AsyncClient) -> None:
    answer = await client.get(ORDERS)
    found = decode(TemplateDetail, answer.json())

    assert [(step.name, step.handler) for step in found.steps] == [("check", "shop.check"), ("charge", "shop.charge")]
    assert found.configuration["input_schema"]["required"] == ["amount"]
    again = await client.get(ORDERS, headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    other = await client.get(ORDERS, headers={"If-None-Match": '"other", W/"more"'})
    assert other.status_code == 200


async def test_a_graph_is_data_or_a_drawing(client: httpx.AsyncClient) -> None:
    graph = decode(TemplateGraph, (await client.get(f"{ORDERS}/graph")).json())

    assert [(edge.from_step, edge.to_step) for edge in graph.edges] == [("check", "charge")]
    for form, part in (("mermaid", "flowchart"), ("dot", "digraph"), ("text", "check")):
        drawn = await client.get(f"{ORDERS}/graph", params={"format": form})
        assert drawn.headers["content-type"].startswith("text/plain")
        assert part in drawn.text
    problem(await client.get(f"{ORDERS}/graph", params={"format": "png"}), 400, "BAD_REQUEST", "malformed_request")


async def test_a_text_is_checked_and_then_registered(client: httpx.AsyncClient) -> None:
    checked = await client.post("/v1/templates", json={"yaml": FRESH, "validate_only": True})
    assert checked.status_code == 200
    assert not decode(Registration, checked.json()).registered
    problem(await client.get("/v1/templates/lab/fresh/1.0.0"), 404, "NOT_FOUND", "template_not_found")

    made = await client.post("/v1/templates", json={"yaml": FRESH})
    assert made.status_code == 201
    assert [each.name for each in decode(Registration, made.json()).templates] == ["fresh"]
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

    served = decode(TemplateValidation, (await client.post(f"{ORDERS}/validate")).json())
    assert (served.valid, served.step_handlers) == (True, ["shop.charge", "shop.check"])
    unserved = (await client.post("/v1/templates/lab/unserved/1.0.0/validate")).json()
    unknown = await client.post("/v1/templates/lab/unknown/1.0.0/validate")
    problem(unknown, 404, "NOT_FOUND", "template_not_found")
    assert unserved["errors"][0] == "no live worker of lab has the handler lab.a"
