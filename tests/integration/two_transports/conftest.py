"""One database with tasks in every state, and a server in front of it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from getpass import getuser
from socket import gethostname

import psycopg
import pytest
from click.testing import CliRunner, Result

import tasker
from tasker.app.sync_wrapper import LoopThread
from tasker.cli.main import cli
from tasker.server.application import Options, application
from tasker.server.sockets import HttpServer, listen
from tasker.server.web.site import add_pages
from tasker.services.submission.submit import Submission
from tasker.template import compile_text
from tasker.version import __version__ as RELEASE
from tests.integration.api.program import ORDERS, WAITING, registered
from tests.support.registered import submit_registered
from tests.support.repository import ROOT

SHOWN = {"amount": 1, "large": 2**70, "small": 1e-7, "text": "é\u2028\N{WATER WAVE}", "nothing": None}
SCREEN: dict[str, str | None] = {"COLUMNS": "80", "NO_COLOR": None}
CHANGED = ("first", "second")
"""Schedules that commands change, one over each transport."""
EACH = 2
"""Of every task that a command changes there is one for each transport."""

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
MOVING = re.compile(
    r"health +[\d.]+ of 1|throughput .*|over for \S+( \S+)?|\b(\d+ [dm] )?\d+(\.\d+)? ?(ms|s|min|h)\b( ago| \d+ m\b)?|"
    r'"(oldest|mean|max|task|step|\w+_duration)_seconds": [\d.]+|"system_health_score": [\d.]+|'
    r'"next_cursor": "\w+={0,2}"|\b[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}\b|'
    r'takes: [\d.]+|"(mean|p95)_ms": \d+|"pid": \d+|worker [0-9a-f]{8}\b|'
    r'"(submitted|failed_attempts)": \d+|in the last minute .*|'
    r'"(beat_age|lease_left|duration|execution_time)_ms": -?[\d.]+|'
    r'"((time_in_state|task_age)_minutes|minutes_in_dlq|priority_score|health|(tasks|steps)_per_hour)": -?[\d.]+|'
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|[+-]\d\d(:\d\d)?)?|\d\d:\d\d:\d\d(\.\d+)?|(?m:^now$)"
)
"""What is another number at another moment."""
HERE = re.compile(
    rf"\b({re.escape(getuser())}|{re.escape(gethostname())}( +\d+)?|{re.escape(RELEASE)})\b|{re.escape(str(ROOT))}|"
    r"((?<=\.py:)|(?<=line ))\d+|\b[0-9a-f]{16}\b"
)
"""Who runs the tests, and where; lines of code, and fingerprints, which depend on them."""


def without_moments(answer: tuple[int, str, str]) -> tuple[int, str, str]:
    code, *texts = answer
    found: dict[str, str] = {}
    named = [UUID.sub(lambda uuid: found.setdefault(uuid[0], f"uuid {len(found)}"), text) for text in texts]
    named = [re.sub(r"\x1b\[(\d+)m", r"<\1>", text) for text in named]
    output, errors = (re.sub(r" +|─+", " ", HERE.sub("here", MOVING.sub("moment", text))) for text in named)
    return code, output, errors


@dataclass
class Served:
    """`tasks` by what they are for, one for each transport where a command changes them."""

    database: str
    url: str = ""
    tasks: dict[str, list[str]] = field(default_factory=dict)

    def invoke(self, place: str, *arguments: str, color: bool = False, stdin: str | None = None) -> Result:
        """Run `tasker ARGUMENTS` on the database or through the server, as the environment says."""
        environment: dict[str, str | None] = {
            "DATABASE_URL": self.database,
            "TASKER_URL": self.url if place == "server" else "",
            **SCREEN,
        }
        return CliRunner().invoke(cli, arguments, env=environment, color=color, input=stdin)


@pytest.fixture(scope="module")
def served(module_database_url: str) -> Iterator[Served]:
    """What both transports are tried on; nobody works any more."""
    found, loop = Served(module_database_url), LoopThread("server")
    loop.start()
    loop.wait(_fill(found))
    server = server_of(tasker.App(module_database_url, work=False))
    found.url = loop.wait(server.__aenter__()).address
    yield found
    loop.wait(server.__aexit__(None, None, None))
    loop.stop()


REFUSED = """insert into tasker.poison_messages (queue_name, reason, message)
values ('worker_shop_queue', 'no hint', '{"raw": "x"}'),
  ('orchestration_task_requests', 'no such template', '{"name": "é"}')"""


SAID = """insert into tasker.step_logs
select s.workflow_step_uuid, s.claim_token, n, s.task_uuid, s.created_at + n * interval '1 ms', 1, 10 * n, 'shop',
  'line é ' || n,
  case when n = 3 then '{"amount": 5}'::jsonb end
from tasker.workflow_steps s cross join generate_series(1, 4) n where s.task_uuid = %s"""


async def _fill(found: Served) -> None:
    with psycopg.connect(found.database) as connection:
        connection.execute(REFUSED)
        connection.execute("select tasker_pgmq.ensure_queue('worker_shop_queue')")  # a worker may need no message
    async with tasker.App(found.database, registry=registered()) as app:
        plans = {plan.name: plan for text in (ORDERS, WAITING) for plan in compile_text(text).plans}
        for plan in plans.values():
            await app.plans.register(plan)
        await app.plan(plans["orders"])
        found.tasks["complete"] = [(await app.run(plans["orders"], SHOWN, tags=["a"])).task_uuid]
        for purpose in ("failed", "reset", "resolve", "complete step", "retry", "retry and close", "opened"):
            for _ in range(EACH):
                report = await app.run(plans["orders"], {"amount": -1})
                found.tasks.setdefault(purpose, []).append(report.task_uuid)
        with psycopg.connect(found.database) as connection:
            connection.execute(SAID, found.tasks["complete"])
        keys = {"cron": "0 2 * * *", "timezone": "Europe/Berlin", "context": {"amount": 1}}
        for name in ("nightly", *CHANGED):
            await app.schedules.create(f"shop/orders/{name}", keys)
        later = await submit_registered(app, plans["waiting"], Submission(run_at="2099-01-31T18:00:00Z"))
        found.tasks["scheduled"] = [later.task_uuid]
        for purpose in ("waiting", "cancel", "pause"):
            submitted = [await submit_registered(app, plans["waiting"], Submission()) for _ in range(EACH)]
            found.tasks[purpose] = [each.task_uuid for each in submitted]


@asynccontextmanager
async def server_of(program: tasker.App) -> AsyncIterator[HttpServer]:
    """A server in front of a program, which starts and stops with it."""
    async with program as app:
        server = HttpServer(application(app, Options(pages=add_pages)), listen("127.0.0.1", 0), grace_seconds=5)
        await server.start()
        try:
            yield server
        finally:
            await server.stop()
