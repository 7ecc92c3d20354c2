"""The web page among 100,000 tasks that have ended: how long each page takes to begin."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping

import tasker
from tasker.services.submitting.submission import Request
from tests.benchmarks.ground import Figure, Ground
from tests.benchmarks.http_sizes import ENDED, FINISHED
from tests.benchmarks.one_process import latency
from tests.benchmarks.over_http import Client, of_the_server, serve
from tests.benchmarks.processes import WORKFLOWS, bench

LOOKS = 60
TEMPLATE = "templates/bench/linear/1.0.0"
PAGES = {
    "web_overview": "",
    "web_tasks": "tasks",
    "web_tasks_failed": "tasks?status=error&within=24h",
    "web_tasks_template": "tasks?namespace=bench&template=linear",
    "web_task": "tasks/{task}",
    "web_task_step": "tasks/{task}?step=s0",
    "web_task_timeline": "tasks/{task}?view=timeline",
    "web_dead_letters": "dead-letters",
    "web_templates": "templates",
    "web_template": TEMPLATE,
    "web_submit": f"{TEMPLATE}/submit",
    "web_fleet": "fleet",
    "web_events": "events",
    "web_settings": "settings",
    "web_actions": "settings/actions",
}
NAMES = tuple(PAGES)


def measure(ground: Ground, names: Mapping[str, None], tell: Callable[[str], None]) -> Iterator[Figure]:
    """One page after the other, over one connection; each is asked for once before."""
    with bench(ground, "web", "pgmq", None) as fleet:
        address = serve(fleet)
        fleet.fleet.worker("worker", str(WORKFLOWS / "linear"), "--namespace", "bench", lease=15)
        task = asyncio.run(_ended(fleet.url))
        which = {"task": task, "count": ground.fewer(FINISHED, 100), "state": "complete", "ended": True}
        fleet.database.execute(ENDED.encode(), which)
        fleet.database.execute("vacuum analyze")
        for name in names:
            tell(name)
            spent = of_the_server(fleet)
            taken = asyncio.run(_looks(address, f"/ui/{PAGES[name].format(task=task)}".rstrip("/"), LOOKS))
            yield latency(name, taken, spent.each(LOOKS))


async def _ended(url: str) -> str:
    """A task that has run."""
    async with tasker.App(url, work=False) as app:
        submitted = await app.submit_request(await app.plan(WORKFLOWS / "linear"), Request({"n": 0}))
        await app.finished(submitted.task_uuid, timeout=60)
        return submitted.task_uuid


async def _looks(address: str, path: str, times: int) -> list[float]:
    async with Client.to(address) as client:
        await client.first_byte(path)
        return [await client.first_byte(path) for _ in range(times)]
