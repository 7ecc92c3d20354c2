"""Pages and answers about a fleet take as many statements for many namespaces as for few, and have bounded pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

import tasker
from tasker.db.connection import Connection
from tasker.server.application import Options, application
from tasker.server.auth.gate import open_gate
from tasker.server.web.site import add_pages
from tests.support.engine_fixture import Lab
from tests.support.fleets.namespaces import fill, lose_messages, space

FEW, MANY, ON_A_PAGE = 3, 70, 50
EVERYTHING = {
    "/ui": "space_000",
    "/ui/fleet": "space_000",
    "/ui/templates": "space_000/flow",
    "/v1/templates": "space_000",
    "/v1/overview": "space_002",
    "/v1/queues": "worker_space_002_queue",
    "/v1/analytics/scaling": "space_002",
    "/v1/doctor": "enqueued in space_002, without a message: 1",
    "/metrics": 'tasker_queue_depth{namespace="space_002"} 1',
}
"""What is read, and something that the answer has."""
ROW = re.compile(r'<th scope="row"><a href="[^"]+"[^>]*>(\w+)(?:/flow)?</a>')


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every statement that goes to the database from here on."""
    seen: list[str] = []
    execute = Connection.execute

    async def counted(self: Connection, statement: str, params: Any = None) -> Any:
        seen.append(statement)
        return await execute(self, statement, params)

    monkeypatch.setattr(Connection, "execute", counted)
    return seen


@pytest.fixture
def lab(database_url: str) -> Iterator[Lab]:
    made = Lab(database_url)
    yield made
    made.close()


async def texts(lab: Lab, *paths: str) -> list[str]:
    """What a server answers that has just been started."""
    async with tasker.App(lab.url, work=False) as app:
        transport = httpx.ASGITransport(app=application(app, Options(pages=add_pages), open_gate))
        async with httpx.AsyncClient(transport=transport, base_url="http://tasker.test") as client:
            answers = [await client.get(path) for path in paths]
    assert {answer.status_code for answer in answers} == {200}
    return [answer.text for answer in answers]


async def test_metrics_have_nine_series_for_a_namespace(lab: Lab) -> None:
    fill(lab, FEW)

    (text,) = await texts(lab, "/metrics")

    assert len(re.findall(r'^\w+{[^}]*"(?:worker_)?space_001(?:_queue)?"[^}]*}', text, re.MULTILINE)) <= 9


async def test_many_namespaces_take_as_many_statements_as_few(lab: Lab, statements: list[str]) -> None:
    taken: dict[str, list[int]] = {path: [] for path in EVERYTHING}
    for first, namespaces in ((0, FEW), (FEW, MANY)):
        fill(lab, namespaces, first)
        lose_messages(lab, namespaces)
        for path, shown in EVERYTHING.items():
            statements.clear()
            (text,) = await texts(lab, path)
            assert shown in text
            taken[path].append(len(statements))

    for path, (few, many) in taken.items():
        assert few == many > 0, path


async def test_charts_show_all_namespaces_on_each_page(lab: Lab) -> None:
    fill(lab, MANY)

    for text in await texts(lab, "/ui", "/ui?page=2"):
        assert f"{MANY} submitted, 0 ended, 0 of them failed" in text


async def test_a_list_of_namespaces_has_pages(lab: Lab) -> None:
    fill(lab, MANY)
    for path in ("/ui", "/ui/fleet", "/ui/templates"):
        first, second = await texts(lab, path, f"{path}?page=2")

        rows, others = ROW.findall(first), ROW.findall(second)
        assert rows == [space(number) for number in range(ON_A_PAGE)]
        quiet = [] if path == "/ui/templates" else [lab.namespace]
        assert others == [*(space(number) for number in range(ON_A_PAGE, MANY)), *quiet]
        assert f'rel="next" href="{path}?page=2"' in first
        assert 'rel="prev"' not in first
        assert f'rel="prev" href="{path}"' in second
        assert 'rel="next"' not in second
        assert "1 to 50" in first
        assert f"51 to {MANY + len(quiet)}" in second


async def test_namespaces_without_workers_are_summed_up_beyond_five(lab: Lab) -> None:
    fill(lab, MANY)

    (text,) = await texts(lab, "/ui")

    assert text.count("1 step in the queue, and no live worker") == 5
    assert "65 more namespaces with steps in the queue, and no live worker" in text


async def test_templates_of_one_namespace_are_listed(lab: Lab) -> None:
    fill(lab, MANY)

    named, unknown = await texts(lab, "/ui/templates?namespace=space_060", "/ui/templates?namespace=nobody")

    assert ROW.findall(named) == ["space_060"]
    assert 'value="space_060"' in named
    assert "No templates match." in unknown
