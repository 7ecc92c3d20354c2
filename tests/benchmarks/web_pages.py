"""The web page among 100,000 tasks that have ended, 20,000 of them dead letters: how long each page takes to begin."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import tasker
from tests.benchmarks.conditions import Conditions, Figure
from tests.benchmarks.http_sizes import FINISHED
from tests.benchmarks.one_process import latency
from tests.benchmarks.over_http import Client, of_the_server, serve
from tests.benchmarks.processes import WORKFLOWS, bench
from tests.support.copies import copy_task

LOOKS, LETTERS = 60, 20_000
ACTIONS = 30
TEMPLATE = "templates/bench/pages/1.0.0"
ROW, TASK = "<tr", r'href="[^"]*/tasks/[0-9a-f-]{36}'


@dataclass(frozen=True)
class Page:
    """A page, and what it must show at least: `rows` matches of the pattern `row`."""

    path: str
    row: str
    rows: int


PAGES = {
    "web_overview": Page("", r"<a[^>]*>bench</a>", 1),
    "web_tasks": Page("tasks", TASK, 50),
    "web_tasks_failed": Page("tasks?status=error&within=24h", TASK, 50),
    "web_tasks_template": Page("tasks?namespace=bench&template=pages", TASK, 50),
    "web_task": Page("tasks/{task}", ROW, 5),
    "web_task_step": Page("tasks/{task}?step=d", ROW, 5),
    "web_task_timeline": Page("tasks/{task}?view=timeline", r'class="bars"', 4),
    "web_dead_letters": Page("dead-letters", ROW, 51),
    "web_dead_letter_groups": Page("dead-letters/groups", ROW, 51),
    "web_dead_letter_entries": Page("dead-letters/entries?namespace=bench", ROW, 51),
    "web_templates": Page("templates", "bench/pages", 1),
    "web_template": Page(TEMPLATE, ROW, 5),
    "web_submit": Page(f"{TEMPLATE}/submit", "input:/fail", 1),
    "web_fleet": Page("fleet", r"/ui/fleet/[0-9a-f-]{36}", 1),
    "web_events": Page("events", TASK, 50),
    "web_settings": Page("settings", ROW, 20),
    "web_actions": Page("settings/actions", ROW, ACTIONS + 1),
}
NAMES = tuple(PAGES)

PRINT = "left(md5(mod(c.n, 200)::text), 16)"
DEAD = {
    "tasks_dlq.fingerprints": f"array[{PRINT}]",
    "tasks_dlq.task_snapshot": f"replace(x.task_snapshot::text, x.fingerprints[1], {PRINT})::jsonb",
    "tasks_dlq.dlq_timestamp": "tasker.now() - c.n * interval '4 seconds'",
}
"""Of the copies of the task that failed: they failed in 200 ways, one every four seconds."""


def measure(conditions: Conditions, names: Mapping[str, None], tell: Callable[[str], None]) -> Iterator[Figure]:
    """One page after the other, over one connection; each is asked for once before."""
    with bench(conditions, "web", "pgmq", None) as fleet:
        address = serve(fleet)
        fleet.fleet.worker("worker", str(WORKFLOWS / "pages"), "--namespace", "bench", lease=15)
        complete, failed = asyncio.run(_ended(fleet.url))
        letters = conditions.fewer(LETTERS, 60)
        copy_task(fleet.database, complete, conditions.fewer(FINISHED, 100) - letters)
        copy_task(fleet.database, failed, letters, DEAD)
        fleet.database.execute("vacuum analyze")
        looks = conditions.fewer(LOOKS, 5)
        for name in names:
            tell(name)
            spent = of_the_server(fleet)
            taken = asyncio.run(_looks(address, name, complete, looks))
            yield latency(name, taken, spent.each(looks))


async def _ended(url: str) -> tuple[str, str]:
    """Run a task that is complete and one that fails, and have something on each page."""
    async with tasker.App(url, work=False) as app:
        plan = await app.plan(WORKFLOWS / "pages")
        complete = await app.run(plan, {"fail": False}, timeout=60)
        failed = await app.run(plan, {"fail": True}, timeout=60)
        for _ in range(ACTIONS // 2):
            assert await app.pause("bench", actor="ann", reason="for the page of actions")
            await app.resume("bench", actor="ann")
        assert (complete.status, failed.status) == ("complete", "error")
        return complete.task_uuid, failed.task_uuid


async def _looks(address: str, name: str, task: str, times: int) -> list[float]:
    page = PAGES[name]
    async with Client.to(address) as client:
        found = [await client.first_byte(f"/ui/{page.path.format(task=task)}".rstrip("/")) for _ in range(times + 1)]
    for _, text in found:
        assert len(re.findall(page.row, text)) >= page.rows, f"{name}: fewer than {page.rows} rows\n{text}"
    return [taken for taken, _ in found[1:]]
