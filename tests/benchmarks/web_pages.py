"""The web page among 100,000 tasks that have ended, 20,000 of them dead letters: how long each page takes to begin."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping

import tasker
from tasker.services.submitting.submission import Request
from tests.benchmarks.conditions import Conditions, Figure
from tests.benchmarks.http_sizes import ENDED, FINISHED
from tests.benchmarks.one_process import latency
from tests.benchmarks.over_http import Client, of_the_server, serve
from tests.benchmarks.processes import WORKFLOWS, bench

LOOKS, LETTERS = 60, 20_000
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
    "web_dead_letter_groups": "dead-letters/groups",
    "web_dead_letter_entries": "dead-letters/entries?namespace=bench",
    "web_templates": "templates",
    "web_template": TEMPLATE,
    "web_submit": f"{TEMPLATE}/submit",
    "web_fleet": "fleet",
    "web_events": "events",
    "web_settings": "settings",
    "web_actions": "settings/actions",
}
NAMES = tuple(PAGES)

DEAD = """
insert into tasker.tasks_dlq (task_uuid, original_state, dlq_reason, task_snapshot, fingerprints, dlq_timestamp)
select q.task_uuid, 'steps_in_process', 'max_retries_exceeded', tasker.dlq_snapshot(q.task_uuid) || jsonb_build_object(
  'workflow_steps', jsonb_build_array(jsonb_build_object('name', 's0', 'last_error', jsonb_build_object(
    'fingerprint', q.fingerprint, 'error_type', 'timeout', 'message', repeat('no answer ', 40))))),
  array[q.fingerprint], tasker.now() - q.place * interval '4 seconds'
from (select t.task_uuid, row_number() over () as place,
    left(md5((row_number() over () %% 200)::text), 16) as fingerprint
  from tasker.tasks t where t.complete order by t.task_uuid limit %(count)s) q
"""
"""Of tasks that have ended so many stand on the list of those that need a person, which failed in 200 ways."""


def measure(conditions: Conditions, names: Mapping[str, None], tell: Callable[[str], None]) -> Iterator[Figure]:
    """One page after the other, over one connection; each is asked for once before."""
    with bench(conditions, "web", "pgmq", None) as fleet:
        address = serve(fleet)
        fleet.fleet.worker("worker", str(WORKFLOWS / "linear"), "--namespace", "bench", lease=15)
        task = asyncio.run(_ended(fleet.url))
        which = {"task": task, "count": conditions.fewer(FINISHED, 100), "state": "complete", "ended": True}
        fleet.database.execute(ENDED.encode(), which)
        fleet.database.execute(DEAD.encode(), {"count": conditions.fewer(LETTERS, 20)})
        fleet.database.execute("vacuum analyze")
        looks = conditions.fewer(LOOKS, 5)
        for name in names:
            tell(name)
            spent = of_the_server(fleet)
            taken = asyncio.run(_looks(address, f"/ui/{PAGES[name].format(task=task)}".rstrip("/"), looks))
            yield latency(name, taken, spent.each(looks))


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
