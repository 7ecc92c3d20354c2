"""A fleet of sessions, and what is said of it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from tasker import App
from tasker.server.application import application
from tasker.services.fleet.overview import overview
from tasker.views.overview import Overview
from tests.support.engine_fixture import Lab, Session
from tests.support.fleets.work import Work, work_of


class Watched:
    """How the lab's fleet is seen."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab

    def overview(self, **args: object) -> Overview:
        return overview(self.lab.observer.core("overview", args))

    def at_work(self, session: Session, name: str, **more: object) -> Session:
        """The session is a worker that is called so, for thirty seconds, with ten slots."""
        place = {"lease_ms": 30_000, "host": "here", "pid": 1, "namespaces": [self.lab.namespace], "concurrency": 10}
        session.core("worker", {"action": "start", "worker": session.worker, "name": name, **place, **more})
        return session


@pytest.fixture
def watched(lab: Lab) -> Watched:
    return Watched(lab)


def over_http(url: str, path: str, params: Mapping[str, float]) -> Any:
    """What a server on this database answers."""

    async def answered() -> Any:
        async with App(url, work=False) as app:
            transport = httpx.ASGITransport(app=application(app))
            async with httpx.AsyncClient(transport=transport, base_url="http://tasker") as client:
                answer = await client.get(path, params=params)
                assert answer.status_code == 200, answer.text
                return answer.json()

    return asyncio.run(answered())


def assert_reads_no_finished_tasks(lab: Lab, function: str, table: str) -> None:
    """A view reads the same whether few tasks have ended two hours ago or many; `table` is one more."""

    def finish(count: int) -> None:
        lab.submit(lab.chain(1), *({} for _ in range(count)))
        lab.one.run_all()

    def look() -> Work:
        lab.observer.execute(f"vacuum tasker.tasks, tasker.workflow_steps, {table}")
        session = lab.session()
        session.set_time(7200)
        return work_of(session, lambda: session.core(function.removesuffix("_v1"), {}))

    finish(40)
    few = look()
    finish(400)

    found = look()
    assert found.rows <= few.rows + 20, found.heaviest
