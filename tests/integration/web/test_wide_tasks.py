"""The page of a wide task costs what the rows cost that it shows, however many steps the task has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextvars import ContextVar

import pytest

import tasker
from tasker.db.session import Params, Rows
from tasker.engine.guarded_connection import GuardedConnection
from tests.integration.web.conftest import Site, offered
from tests.support.engine_fixture import Direct, Lab, fail, ok
from tests.support.fleets.work import work_of
from tests.support.random_plans import Spec

SMALL, LARGE = 60, 480
SHOWN, RUNNING = 10, 5
FAILED = "s00003"
ROW = re.compile(r"data-row data-step>(.*?)</a>")
recorded: ContextVar[list[tuple[str, Params]]] = ContextVar("recorded")


@pytest.fixture
def lab(database_url: str) -> Iterator[Lab]:
    made = Lab(database_url)
    yield made
    made.close()


@pytest.fixture
def tasks(lab: Lab) -> list[str]:
    """A narrow and a wide task under way: some steps are done, one has failed, most wait."""
    return [wide(lab, width) for width in (SMALL, LARGE)]


def wide(lab: Lab, width: int) -> str:
    names = [f"s{number:05}" for number in range(width)]
    fan = (Spec(name, depends_on=("first",)) for name in names)
    plan = lab.plan(Spec("first"), *fan, Spec("end", depends_on=tuple(names)), name=f"wide{width}")
    task, claims = lab.running(plan)
    lab.one.finish(claims["first"])
    lab.one.advance(*(fail(claim) if claim["name"] == FAILED else ok(claim) for claim in lab.one.claim(RUNNING)))
    lab.lose_hints()
    return task


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasker.server.web.pages.task.STEPS_PER_PAGE", SHOWN)
    monkeypatch.setattr("tasker.server.web.pages.task.LARGEST_DRAWN_GRAPH", 2 * SHOWN)


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Params]]:
    """What a request of this test asks the database."""
    execute, asked = GuardedConnection.execute, list[tuple[str, Params]]()

    async def recording(self: GuardedConnection, statement: str, params: Params = None) -> Rows:
        recorded.get([]).append((statement, params))
        return await execute(self, statement, params)

    monkeypatch.setattr(GuardedConnection, "execute", recording)
    recorded.set(asked)
    return asked


@pytest.mark.parametrize(
    "words",
    [
        {"view": "graph"},
        {"view": "graph", "first": "30"},
        {"view": "timeline"},
        {"view": "history"},
        {"view": "logs"},
        {"view": "data"},
        {"step": "s00001"},
        {"step": FAILED},
        {"step": "s00020"},
    ],
    ids=lambda words: " ".join(words.values()),
)
async def test_page_of_a_wide_task_visits_no_more_pages_than_of_a_narrow_one(
    lab: Lab, tasks: list[str], statements: list[tuple[str, Params]], words: dict[str, str]
) -> None:
    async with tasker.App(lab.url, work=False) as app, offered(app) as site:
        lab.one.execute("vacuum analyze")
        lab.one.execute("set enable_seqscan to off")  # as where tables are large
        asked = [await asked_for(site, task, statements, **words) for task in tasks]

    small, large = (work_of(lab.one, lambda which=which: replayed(lab, which)) for which in asked)

    assert large.pages <= small.pages * 1.3 + 20, (small.pages_of, large.pages_of)


async def asked_for(
    site: Site, task: str, statements: list[tuple[str, Params]], **words: str
) -> list[tuple[str, Params]]:
    await site.text(f"tasks/{task}", **words)  # plans are read once by each process
    statements.clear()
    await site.text(f"tasks/{task}", **words)
    return [*statements]


def replayed(lab: Lab, statements: list[tuple[str, Params]]) -> None:
    direct = Direct(lab.one)
    for statement, params in statements:
        direct.session.connection.execute(statement.encode(), params)


async def test_wide_task_shows_its_totals_and_its_first_failure_on_every_page(lab: Lab, tasks: list[str]) -> None:
    async with tasker.App(lab.url, work=False) as app, offered(app) as site:
        last = await site.text(f"tasks/{tasks[0]}", first=str(SMALL))

    assert ROW.findall(last) == ["s00059", "end"]
    assert f"{RUNNING}/{SMALL + 2}" in last
    assert f"{SMALL + 1} to {SMALL + 2} of {SMALL + 2}" in last
    assert re.search(rf"Step <a [^>]*>{FAILED}</a> failed: TestError: it broke", last)
    assert "Retry failed" in last


async def test_step_of_a_wide_task_shows_its_inputs(lab: Lab, tasks: list[str]) -> None:
    async with tasker.App(lab.url, work=False) as app, offered(app) as site:
        text = await site.text(f"tasks/{tasks[0]}", step="s00040")
        none = await site.text(f"tasks/{tasks[0]}", step="nix")

    assert re.search(r"<summary>first</summary><pre[^>]*>\{\s*\"by\": \"first\"", text)
    assert "This task has no step nix" in none


async def test_reasons_of_a_wide_task_are_shown_when_asked_for(lab: Lab, tasks: list[str]) -> None:
    async with tasker.App(lab.url, work=False) as app, offered(app) as site:
        plain = await site.text(f"tasks/{tasks[0]}")
        link = re.search(r'href="/ui/(tasks/[^"]+)">Explain all', plain)
        assert link is not None
        explained = await site.text(link[1])

    assert "Why it has not finished" in explained
    assert "TestError" in explained.partition("Why it has not finished")[2].partition("</section>")[0]


async def test_report_read_in_slices_is_the_report_read_at_once(
    lab: Lab, tasks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with tasker.App(lab.url, work=False) as app:
        whole = await app.tasks.report(tasks[0])
        monkeypatch.setattr("tasker.services.tasks.read.SLICE", 7)
        sliced = await app.tasks.report(tasks[0])

    assert (sliced, [*sliced.steps]) == (whole, [*whole.steps])
    assert (len(whole.steps), whole.more_steps) == (SMALL + 2, 0)
