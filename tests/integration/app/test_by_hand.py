"""What a program changes by hand is kept with who did it, whether it was done or refused."""

from __future__ import annotations

import getpass
import inspect
from pathlib import Path

import pytest

import tasker
from tasker.app.sync_app import SERVICES
from tasker.errors import DatabaseError, StateMachineError
from tasker.services.audit import WHO
from tests.integration.app.test_ends_by_operators import HELD
from tests.integration.app.test_sync_app import services
from tests.support.command_line import invoke


@pytest.fixture
async def held(module_database_url: str, tmp_path: Path) -> tuple[str, str]:
    (tmp_path / "held.yaml").write_text(HELD)
    async with tasker.App(module_database_url, work=False) as app:
        one, two = [(await app.submit(tmp_path / "held.yaml", {"n": str(tmp_path), "m": m})).task_uuid for m in "ab"]
    return one, two


async def test_it_is_kept_with_the_user_or_with_the_name_that_the_program_gives(
    module_database_url: str, held: tuple[str, str]
) -> None:
    one, two = held
    async with tasker.App(module_database_url, work=False) as app:
        await app.tasks.cancel(one)
        with pytest.raises(StateMachineError):
            await app.tasks.cancel(one, actor="ada")
        await app.pause(task=two, actor="ada", reason="secret")
        await app.steps.complete(two, "only", {"secret": 1}, actor="grace", reason="by hand")
        done = await app.operator_log.list(limit=4)
    assert [(each.actor, each.endpoint, each.path, each.status) for each in reversed(done)] == [
        (getpass.getuser(), "App.tasks.cancel", one, 0),
        ("ada", "App.tasks.cancel", one, 1),
        ("ada", "App.pauses.pause", two, 0),
        ("grace", "App.steps.complete", f"{two} only", 0),
    ]
    assert {each.proof for each in done} == {"os_user"}


async def test_what_cannot_be_kept_is_not_done(
    module_database_url: str, held: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*args: object) -> str:
        raise DatabaseError("read only")

    monkeypatch.setattr("tasker.services.audit.AuditLog.asked", refuse)
    async with tasker.App(module_database_url, work=False) as app:
        with pytest.raises(DatabaseError, match="read only"):
            await app.tasks.cancel(held[0])
        assert await app.tasks.state(held[0]) != ("cancelled", True)


def test_a_command_is_kept_once(module_database_url: str, held: tuple[str, str]) -> None:
    def count() -> int:
        with tasker.SyncApp(module_database_url, work=False) as app:
            return len(app.wait_for(app.original.operator_log.list(limit=1000)))

    before = count()
    assert invoke("task", "cancel", held[0], database=module_database_url).exit_code == 0
    assert count() == before + 1


def test_every_method_that_says_who_acts_is_kept() -> None:
    methods = [
        (service.__name__, name, method)
        for service in (services()[name] for name in SERVICES)
        for name, method in inspect.getmembers(service, inspect.iscoroutinefunction)
    ]
    acting = [each for each in methods if each[1][0] != "_" and {*WHO} & {*inspect.signature(each[2]).parameters}]
    assert len(acting) > 10
    assert [(kind, name) for kind, name, method in acting if not hasattr(method, "__wrapped__")] == []
