"""Each thing that can be done by hand, by a program, over HTTP and by a command: its row is in its own transaction."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx
import pytest
import pytest_asyncio
from fastapi.routing import APIRoute

import tasker
from tasker.db.transactions import Transaction
from tasker.errors import DatabaseError
from tasker.operations.approvals import APPROVAL
from tasker.operations.dead_letters import FailureSelection
from tasker.server.application import SUBJECTS, application
from tasker.server.auth.gate import OPERATES
from tasker.services.approval_links import LinkSigner
from tasker.services.operators.pauses import PauseTarget
from tests.integration.app.kept_actions import Written, rows_written
from tests.integration.app.scene import Scene, set_up
from tests.support.command_line import invoke
from tests.support.deployments import REFUND, token_of_refund

if TYPE_CHECKING:
    from tests.support.servers.databases import Server

ROOT = Path(__file__).parents[3]
WHO = {"actor": "ada", "reason": "by hand"}
QUEUE = "orchestration_step_results"
NIGHTLY, KEYS = "shop/orders/nightly", {"cron": "0 2 * * *", "context": {"amount": 1}}
SPAN = (datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 3, tzinfo=UTC))
Act = Callable[[Scene], Awaitable[object]]

BY_PROGRAMS: dict[str, Act] = {
    "App.tasks.cancel": lambda scene: scene.app.tasks.cancel(scene.waiting, actor="ada"),
    "App.tasks.compensate": lambda scene: scene.app.tasks.compensate(scene.undoable, **WHO),
    "App.decide": lambda scene: scene.app.approvals.decide(scene.asked, "approve", "approved", actor="ada"),
    "App.approvals.link": lambda scene: scene.app.approvals.link(scene.asked, "approve", "bob", actor="ada"),
    "App.steps.reset": lambda scene: scene.app.steps.reset(scene.failed, "check", **WHO),
    "App.steps.retry": lambda scene: scene.app.steps.retry(scene.failed, **WHO),
    "App.steps.resolve": lambda scene: scene.app.steps.resolve(scene.failed, "check", **WHO),
    "App.steps.complete": lambda scene: scene.app.steps.complete(scene.failed, "check", {"amount": 1}, **WHO),
    "App.pauses.pause": lambda scene: scene.app.pauses.pause(PauseTarget.of("nobody"), **WHO),
    "App.pauses.resume": lambda scene: scene.app.pauses.resume(PauseTarget.of(task=scene.waiting), **WHO),
    "App.pauses.pause queue": lambda scene: scene.app.pauses.pause(PauseTarget.of(queue=QUEUE), **WHO),
    "App.dead_letters.open": lambda scene: scene.app.dead_letters.open(scene.waiting, actor="ada"),
    "App.dead_letters.update": lambda scene: scene.app.dead_letters.update(
        scene.entry, notes="seen", resolved_by="ada"
    ),
    "App.dead_letters.retry": lambda scene: scene.app.dead_letters.retry(scene.entry, **WHO),
    "App.replays.begin": lambda scene: scene.app.replays.begin(FailureSelection(), **WHO),
    "App.replays.steer": lambda scene: scene.app.replays.steer(scene.replay, "paused", actor="ada"),
    "App.reruns.start": lambda scene: scene.app.reruns.start(scene.failed, "check", **WHO),
    "App.domain_events.replay": lambda scene: scene.app.domain_events.replay(scene.subscriber, after=0, actor="ada"),
    "App.domain_events.deliveries.retry": lambda scene: scene.app.domain_events.deliveries.retry(
        scene.subscriber, actor="ada"
    ),
    "App.domain_events.deliveries.stop": lambda scene: scene.app.domain_events.deliveries.stop(
        "shipping", actor="ada", reason="no"
    ),
    "App.domain_events.deliveries.resume": lambda scene: scene.app.domain_events.deliveries.resume(
        scene.subscriber, actor="ada"
    ),
    "App.schedules.create": lambda scene: scene.app.schedules.create("shop/orders/new", KEYS, actor="ada"),
    "App.schedules.pause": lambda scene: scene.app.schedules.pause(NIGHTLY, **WHO),
    "App.schedules.resume": lambda scene: scene.app.schedules.resume("shop/orders/idle", **WHO),
    "App.schedules.delete": lambda scene: scene.app.schedules.delete(NIGHTLY, **WHO),
    "App.schedules.trigger": lambda scene: scene.app.schedules.trigger(NIGHTLY, **WHO),
    "App.schedules.backfill": lambda scene: scene.app.schedules.backfill(NIGHTLY, *SPAN, **WHO),
    "App.deployments.apply": lambda scene: scene.app.deployments.apply(REFUND, token_of_refund(), actor="ada"),
    "App.saved_views.save": lambda scene: scene.app.saved_views.save("mine", "status=error", actor="ada"),
    "App.saved_views.remove": lambda scene: scene.app.saved_views.remove("theirs", actor="ada"),
}
NOTHING_TO_DO = {"App.domain_events.deliveries.retry", "App.approvals.link"}
"""In this scene no event was put aside; a link is signed, and not stored."""
SEVERAL = {"App.retention.prune", "App.template_texts.register"}


@pytest.fixture(scope="module")
def scenery(server: Server, migrated_template: str) -> Iterator[tuple[str, dict[str, str]]]:
    """The name of a database with a scene, and what is in it: a copy costs a tenth of another one."""
    with server.database(migrated_template) as url:
        yield urlsplit(url).path[1:], asyncio.run(_set_up(url))


async def _set_up(url: str) -> dict[str, str]:
    found = await set_up(url)
    async with tasker.App(url, work=False) as app:
        await app.pauses.pause(PauseTarget.of(task=found["waiting"]), **WHO)
        await app.saved_views.save("theirs", "status=complete", actor="grace")
        Scene(app, **found).rows("delete from tasker.operator_actions returning 1")
    return found


@pytest_asyncio.fixture
async def scene(
    server: Server, scenery: tuple[str, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Scene]:
    template, found = scenery
    with server.database(template) as url:
        async with tasker.App(url, work=False) as app:
            monkeypatch.setattr(app.approvals, "_signer", LinkSigner(("a" * 32,)))
            yield Scene(app, **found)


ROWS = "select endpoint, status, refusal from tasker.operator_actions order by action_uuid"
ROWS_OF_ADA = ROWS.replace(" order", " where actor = 'ada' order")


@pytest.mark.parametrize("name", BY_PROGRAMS)
async def test_without_the_commit_nothing_of_it_is_done_and_with_it_its_row_is_there(
    scene: Scene, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint, before, execute = name.partition(" ")[0], scene.everything(), Transaction.execute

    async def refused(self: Transaction, statement: str, params: Any = None) -> Any:
        if statement == "commit":
            raise DatabaseError("the disk is full")
        return await execute(self, statement, params)

    with monkeypatch.context() as patched:
        patched.setattr(Transaction, "execute", refused)
        with pytest.raises(DatabaseError, match="the disk is full"):
            await BY_PROGRAMS[name](scene)
    assert scene.everything() == before
    assert scene.rows(ROWS_OF_ADA) == [(endpoint, 1, DatabaseError.error_type)]

    await BY_PROGRAMS[name](scene)
    assert (scene.everything() == before) == (name in NOTHING_TO_DO)
    assert scene.rows(ROWS_OF_ADA)[1:] == [(endpoint, 0, None)]
    assert scene.rows(ROWS) == scene.rows(ROWS_OF_ADA)


def test_each_method_that_changes_something_by_hand_is_among_them() -> None:
    sources = [path.read_text() for path in (ROOT / "tasker/services").rglob("*.py")]
    marked = {found for text in sources for found in re.findall(r'@audited\(\s*"(App[\w.]+)"', text)}
    assert marked == {name.partition(" ")[0] for name in BY_PROGRAMS} | SEVERAL


TASK, STEP = "/v1/tasks/{uuid}", "/v1/tasks/{uuid}/workflow_steps/{step_uuid}"
SCHEDULE = "/v1/schedules/{namespace}/{template}/{name}"
BY_HTTP: dict[str, tuple[str, dict[str, Any] | None]] = {
    f"DELETE {TASK}": ("/v1/tasks/{waiting}?reason=no", None),
    f"POST {TASK}/retry": ("/v1/tasks/{failed}/retry", {"reason": "mended"}),
    f"POST {TASK}/compensate": ("/v1/tasks/{undoable}/compensate", {"reason": "given up"}),
    f"POST {APPROVAL}/decision": ("/v1/approvals/{asked}/approve/decision", {"decision": "approved"}),
    f"POST {APPROVAL}/link": ("/v1/approvals/{asked}/approve/link", {"subject": "bob"}),
    f"POST {TASK}/rerun": ("/v1/tasks/{failed}/rerun", {"from_step": "check", "reason": "mended"}),
    f"PATCH {STEP}": (
        "/v1/tasks/{failed}/workflow_steps/{step}",
        {"action_type": "resolve_manually", "reason": "done", "resolved_by": "ada"},
    ),
    "POST /v1/pauses": ("/v1/pauses", {"namespace": "nobody", "reason": "wait"}),
    "DELETE /v1/pauses": ("/v1/pauses?task={waiting}", None),
    "POST /v1/dlq": ("/v1/dlq", {"task_uuid": "{waiting}", "notes": "odd"}),
    "PATCH /v1/dlq/entry/{dlq_entry_uuid}": ("/v1/dlq/entry/{entry}", {"resolution_notes": "seen"}),
    "POST /v1/dlq/entry/{dlq_entry_uuid}/retry": ("/v1/dlq/entry/{entry}/retry", {"reason": "mended"}),
    "POST /v1/dlq/replays": ("/v1/dlq/replays", {"all": True, "note": "mended"}),
    "PATCH /v1/dlq/replays/{replay_uuid}": ("/v1/dlq/replays/{replay}", {"state": "paused"}),
    "POST /v1/schedules": (
        "/v1/schedules",
        {"namespace": "shop", "template": "orders", "name": "new", "schedule": KEYS, "actor": "ada"},
    ),
    f"DELETE {SCHEDULE}": (f"/v1/schedules/{NIGHTLY}", None),
    f"POST {SCHEDULE}/pause": (f"/v1/schedules/{NIGHTLY}/pause", {"reason": "enough"}),
    f"POST {SCHEDULE}/resume": ("/v1/schedules/shop/orders/idle/resume", {"reason": "again"}),
    f"POST {SCHEDULE}/trigger": (f"/v1/schedules/{NIGHTLY}/trigger", {"reason": "now"}),
    f"POST {SCHEDULE}/backfill": (
        f"/v1/schedules/{NIGHTLY}/backfill",
        {"begin": "2026-01-01T00:00:00Z", "end": "2026-01-03T00:00:00Z"},
    ),
    "POST /v1/templates/apply": ("/v1/templates/apply", {"yaml": REFUND, "token": token_of_refund()}),
    "POST /v1/events/subscribers/{name}/replay": ("/v1/events/subscribers/{subscriber}/replay", {"after": 0}),
}


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Written:
    return rows_written(monkeypatch)


@pytest.mark.parametrize("endpoint", BY_HTTP)
async def test_a_request_has_its_row_in_the_transaction_of_what_it_asks_for(
    scene: Scene, endpoint: str, written: Written
) -> None:
    path, body = BY_HTTP[endpoint]
    known = vars(scene)
    filled = {key: value.format(**known) if isinstance(value, str) else value for key, value in (body or {}).items()}
    transport = httpx.ASGITransport(app=application(scene.app))
    async with httpx.AsyncClient(transport=transport, base_url="http://tasker") as client:
        answer = await client.request(
            endpoint.partition(" ")[0], path.format(**known), **({"json": filled} if body else {})
        )
    assert answer.is_success, answer.text
    assert scene.rows(ROWS) == [(endpoint, answer.status_code, None)]
    assert written == [(True, answer.status_code)]


def test_each_route_that_changes_something_by_hand_is_among_them() -> None:
    routes = [route for module in SUBJECTS for route in module.routes.routes if isinstance(route, APIRoute)]
    kept = [route for route in routes if (route.openapi_extra or {}).get(OPERATES)]
    known = {f"{method} {route.path}" for route in kept for method in route.methods}
    assert known == {*BY_HTTP, "POST /v1/templates"}


async def test_a_refused_request_has_a_row_with_its_status_and_the_reason(scene: Scene) -> None:
    transport = httpx.ASGITransport(app=application(scene.app))
    async with httpx.AsyncClient(transport=transport, base_url="http://tasker") as client:
        for _ in range(2):
            await client.delete(f"/v1/tasks/{scene.waiting}")
        await client.post("/v1/pauses", json={"namespace": 7})
    why = f"task {scene.waiting} is cancelled and cannot be cancelled"
    assert scene.rows(ROWS) == [
        (f"DELETE {TASK}", 200, None),
        (f"DELETE {TASK}", 400, why),
        ("POST /v1/pauses", 400, "RequestValidationError"),
    ]


BY_COMMANDS: dict[str, list[str]] = {
    "tasker task cancel": ["{waiting}"],
    "tasker task retry": ["{failed}"],
    "tasker task rerun": ["{failed}"],
    "tasker task step reset": ["{failed}", "check"],
    "tasker task step resolve": ["{failed}", "check"],
    "tasker task step complete": ["{failed}", "check", "--result", "{{}}"],
    "tasker pause": ["nobody"],
    "tasker resume": ["--task", "{waiting}"],
    "tasker dlq open": ["{waiting}"],
    "tasker dlq update": ["{entry}", "--notes", "seen"],
    "tasker dlq retry": ["{entry}"],
    "tasker dlq replays pause": ["{replay}"],
    "tasker schedule create": ["shop/orders/new", "--every", "1h", "--set", "amount=1"],
    "tasker schedule pause": [NIGHTLY],
    "tasker schedule resume": ["shop/orders/idle"],
    "tasker schedule delete": [NIGHTLY],
    "tasker schedule trigger": [NIGHTLY],
    "tasker schedule backfill": [NIGHTLY, "--from", "2026-01-01", "--to", "2026-01-03"],
    "tasker events replay": ["{subscriber}", "--after", "0"],
}


@pytest.mark.parametrize("command", BY_COMMANDS)
async def test_a_command_has_its_row_in_the_transaction_of_what_it_does(
    scene: Scene, command: str, written: Written
) -> None:
    arguments = [each.format(**vars(scene)) for each in BY_COMMANDS[command]]
    given = [*command.split()[1:], *arguments]
    done = await asyncio.to_thread(invoke, *given, database=scene.app.database_url)
    assert done.exit_code == 0, done.output
    assert scene.rows(ROWS) == [(command, 0, None)]
    assert written == [(True, 0)]
