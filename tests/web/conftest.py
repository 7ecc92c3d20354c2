"""Real pages: a server and a worker as processes, tasks of every kind, and a browser that forgives nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, LiteralString
from urllib.parse import urlsplit

import httpx
import psycopg
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tasker.server.web.site import SECTIONS
from tests.support.command_line import write_workflow
from tests.support.fleets.fleet import Fleet
from tests.support.servers import browser as browsers
from tests.support.servers.brokers import free_port
from tests.support.servers.plain_http import PLAIN
from tests.support.waiting import until

PATIENCE_MS = 60_000  # a page looks again after five seconds, on a machine that may stall for more
expect.set_options(timeout=PATIENCE_MS)
TASKER = [sys.executable, "-m", "tasker"]
EVIL = "<script>document.title='owned'</script>"
TEMPLATE = """
    name: report
    namespace_name: shop
    version: "1.0.0"
    description: Fetches figures, looks at them from many sides, publishes.
    identity_strategy: always_unique
    input_schema:
      type: object
      required: [amount]
      properties:
        amount: {type: integer, description: In cents.}
        note: {type: string}
        fail: {type: boolean}
        hold: {type: boolean}
    steps:
      - {name: fetch, handler: web.fetch}
      - {name: choose, type: decision, handler: web.choose, dependencies: [fetch]}
      - {name: by_hand, handler: web.plain, dependencies: [choose]}
      - {name: by_machine, handler: web.plain, dependencies: [choose]}
      - {name: cut, type: batchable, handler: web.cut, dependencies: [fetch], batch_config: {batch_size: 1}}
      - {name: work, type: batch_worker, handler: web.work, dependencies: [cut]}
      - name: publish
        type: deferred_convergence
        handler: web.publish
        dependencies: [by_hand, by_machine, work]
        publishes_events: [{name: report.published}]
"""
HANDLERS = """
    import asyncio
    import logging
    from pathlib import Path

    from tasker.errors import PermanentError
    from tasker.handlers.decorators import (
        BatchConfig, Decision, batch_analyzer, batch_worker, decision_handler, depends_on, step_handler
    )

    HERE = Path(__file__).parent
    HOLD = HERE / "hold"


    @step_handler("web.fetch")
    async def fetch(context):
        print("fetches", context.input_data.get("note", "nothing"))
        logging.getLogger("shop").warning("slow line")
        while context.input_data.get("hold") and HOLD.exists():
            context.report_progress(done=1, total=2, message="held")
            await asyncio.sleep(0.05)
        if context.input_data.get("fail") and not (HERE / f"mended-{context.task_uuid}").exists():
            raise PermanentError("no figures today " + context.input_data.get("note", ""), error_code="NONE")
        return {"rows": context.input_data["amount"]}


    @decision_handler("web.choose")
    def choose():
        return Decision.route(["by_machine"])


    @step_handler("web.plain")
    async def plain(context):
        return {}


    @batch_analyzer("web.cut", worker_template="work")
    def cut(context):
        return BatchConfig(total_items=8, batch_size=1)


    @batch_worker("web.work")
    def work(batch_context):
        return {"items_processed": 1}


    @step_handler("web.publish")
    async def publish(context):
        return {"url": "published"}
"""


@dataclass
class Shop:
    """A server with a worker: `address` of the pages' root; `tasks` by what became of them."""

    folder: Path
    database_url: str
    fleet: Fleet
    port: int
    workflow: Path
    process: subprocess.Popen[bytes] | None = None
    tasks: dict[str, str] = field(default_factory=dict)
    options: Sequence[str] = ()

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def url(self, path: str = "") -> str:
        return f"{self.root}/ui{f'/{path}' if path else ''}"

    def start(self) -> None:
        """The server, on the same port as before."""
        command = [*TASKER, "server", "--port", str(self.port), *self.options]
        environment = {**os.environ, "DATABASE_URL": self.database_url}
        with (self.folder / "server.log").open("a") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder, env=environment)
        until(self._answers, "the server answers", show=(self.folder / "server.log").read_text)

    def stop(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(60)
            self.process = None

    def submit(self, **context: object) -> str:
        body = {"namespace": "shop", "name": "report", "context": {"amount": 3, **context}, "tags": ["nightly", EVIL]}
        answer = PLAIN.post(f"{self.root}/v1/tasks", json=body)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["task_uuid"])

    def held(self) -> str:
        """A task whose first step runs until it is let go, as are all that are held."""
        (self.workflow / "hold").touch()
        task = self.submit(hold=True)
        until(lambda: self.states(task)["fetch"] == "in_progress", "its step runs")
        return task

    def let_go(self) -> None:
        (self.workflow / "hold").unlink()

    def failed(self, **context: object) -> str:
        """A task whose first step has failed for good."""
        task = self.submit(fail=True, **context)
        assert self.ended(task) == "error"
        return task

    def mend(self, task: str) -> None:
        """What its step failed at does not stand in its way any more."""
        (self.workflow / f"mended-{task}").touch()

    def report(self, task: str) -> Any:
        return PLAIN.get(f"{self.root}/v1/tasks/{task}/report").json()

    def states(self, task: str) -> dict[str, str]:
        """Those of its steps, in the database."""
        return dict(self.rows("select name, state from tasker.workflow_steps where task_uuid = %s", task))

    def rows(self, statement: LiteralString, *values: object) -> list[tuple[Any, ...]]:
        """What the database says."""
        with psycopg.connect(self.database_url) as connection:
            return connection.execute(statement, values).fetchall()

    def ended(self, task: str) -> str:
        return str(PLAIN.get(f"{self.root}/v1/tasks/{task}", params={"wait": "20s"}).json()["status"])

    def _answers(self) -> bool:
        try:
            return PLAIN.get(f"{self.root}/ready").status_code == 200
        except httpx.HTTPError:
            return False


@contextmanager
def opened(folder: Path, database_url: str, handlers: str) -> Iterator[Shop]:
    """A shop with its processes, which end with it."""
    workflow = write_workflow(folder / "report", TEMPLATE, handlers)
    fleet = Fleet(database_url, folder)
    shop = Shop(folder, database_url, fleet, free_port(), workflow)
    try:
        fleet.worker("one", str(workflow))
        shop.start()
        until(lambda: PLAIN.get(f"{shop.root}/v1/templates").json()["total_count"] > 0, "the template is registered")
        yield shop
    finally:
        (workflow / "hold").unlink(missing_ok=True)
        shop.stop()
        fleet.stop()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium without a window. Its driver keeps a loop in this thread, where no other test may find it."""
    found = browsers.program() or browsers.give_up()
    with sync_playwright() as driver:
        arguments = ["--disable-gpu", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
        launched = driver.chromium.launch(executable_path=found, args=arguments)
        yield launched
        launched.close()


@dataclass
class Strict:
    """A page that remembers what should not have happened."""

    page: Page
    context: BrowserContext
    faults: list[str]
    allowed: tuple[str, ...] = ()

    def judge(self) -> None:
        left = [fault for fault in self.faults if not any(word in fault for word in self.allowed)]
        assert left == []


@contextmanager
def watched(browser: Browser, root: str, **options: object) -> Iterator[Strict]:
    """A page of its own; an error in its console, a broken policy or a request to elsewhere fails the test."""
    context = browser.new_context(**options)  # type: ignore[arg-type]
    page, faults = context.new_page(), list[str]()
    strict = Strict(page, context, faults)
    page.on("console", lambda said: faults.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: faults.append(str(error)))
    host = urlsplit(root).netloc
    page.on("request", lambda sent: None if urlsplit(sent.url).netloc in (host, "") else faults.append(sent.url))
    page.set_default_timeout(PATIENCE_MS)
    yield strict
    context.close()
    strict.judge()


@pytest.fixture(scope="module")
def shop(module_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """Open to everybody, with tasks that are complete, failed and held."""
    with opened(tmp_path_factory.mktemp("shop"), module_database_url, HANDLERS) as made:
        (made.workflow / "hold").touch()
        made.tasks = {
            "complete": made.submit(note=EVIL),
            "failed": made.submit(fail=True, note=EVIL),
            "held": made.submit(hold=True),
        }
        assert made.ended(made.tasks["complete"]) == "complete"
        assert made.ended(made.tasks["failed"]) == "error"
        yield made


@pytest.fixture
def strict(browser: Browser, shop: Shop) -> Iterator[Strict]:
    """A page in a window of usual size."""
    with watched(browser, shop.root, viewport={"width": 1280, "height": 900}) as made:
        yield made


@pytest.fixture
def page(strict: Strict) -> Page:
    return strict.page


SCHEDULE = "shop/report/nightly"


def scheduled(shop: Shop) -> None:
    """Create a schedule, if there is none."""
    keys = {"cron": "0 2 * * *", "context": {"amount": 3}}
    namespace, template, name = SCHEDULE.split("/")
    body = {"namespace": namespace, "template": template, "name": name, "schedule": keys}
    PLAIN.post(f"{shop.root}/v1/schedules", json=body)


def addresses(shop: Shop) -> list[str]:
    """Every page, as far as what it shows differs."""
    done, failed = shop.tasks["complete"], shop.tasks["failed"]
    template = "templates/shop/report/1.0.0"
    scheduled(shop)
    return [
        *(section.path for section in SECTIONS),
        "tasks?status=error&within=1h&sort=oldest",
        "tasks?tag=nothing-has-it",
        f"tasks/bulk?action=retry&task={failed}",
        f"tasks/{done}",
        f"tasks/{done}?step=work_001",
        *(f"tasks/{done}?view={view}" for view in ("timeline", "logs", "history", "data")),
        f"tasks/{failed}?step=fetch",
        f"tasks/{shop.tasks['held']}",
        template,
        f"{template}?view=yaml",
        f"{template}?view=versions",
        f"{template}/submit",
        "templates/new",
        f"schedules/{SCHEDULE}",
        f"schedules/{SCHEDULE}?from=2026-01-01&to=2026-01-09",
        *(f"dead-letters/{each}" for each in ("groups", "entries", "stale", "replays", f"tasks/{failed}")),
        "dead-letters/replay?all=yes",
        "dead-letters/replay",
        "dead-letters?namespace=nothing",
        "settings?all=yes",
        "settings/doctor",
        "settings/actions",
        "help",
        "nowhere",
    ]
