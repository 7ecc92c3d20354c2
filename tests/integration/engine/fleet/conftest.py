"""A fleet of sessions, and what is said of it."""

from __future__ import annotations

import json

import pytest

from tasker.services.fleet.overview import Overview, overview
from tests.support.engine_fixture import Lab, Session


class Watched:
    """How the lab's fleet is seen."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab

    def overview(self, **args: float) -> Overview:
        return overview(self.lab.observer.value("select tasker.overview_v1(%s::jsonb)", json.dumps(args)))

    def at_work(self, session: Session, name: str, **more: object) -> Session:
        """The session is a worker that is called so, for thirty seconds, with ten slots."""
        place = {"lease_ms": 30_000, "host": "here", "pid": 1, "namespaces": [self.lab.namespace], "concurrency": 10}
        session.core("worker", {"action": "start", "worker": session.worker, "name": name, **place, **more})
        return session


@pytest.fixture
def watched(lab: Lab) -> Watched:
    return Watched(lab)
