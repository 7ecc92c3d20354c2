"""Options of `tasker worker` override settings of the tables that the worker takes."""

from __future__ import annotations

from typing import Any

import pytest

from tasker.app import serving
from tasker.execution.settings import WorkerSettings
from tests.support.command_line import invoke


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    services: list[Any] = []
    monkeypatch.setattr(serving, "run", lambda serve, service, ready: services.append(service))
    return services


def settings_of(started: list[Any], *options: str) -> WorkerSettings:
    answer = invoke("worker", "--no-config", *options)
    assert answer.exit_code == 0, answer.output
    configuration = started[-1].configuration
    assert configuration.worker == started[-1].reread().worker
    worker: WorkerSettings = configuration.worker
    return worker


def test_options_of_a_worker_override_its_settings(started: list[Any]) -> None:
    settings = settings_of(started, "--concurrency", "7", "--threads", "3", "--result-path", "queued", "--lease", "2.5")

    assert settings.dispatch.max_concurrent_handlers == 7
    assert settings.execution.threads == 3
    assert settings.execution.result_path == "queued"
    assert settings.lease.lease_ms == 2500


def test_options_that_are_not_given_leave_the_settings(started: list[Any]) -> None:
    assert settings_of(started) == settings_of(started, "--concurrency", "200")
    assert not settings_of(started).lease.is_set("lease_ms")
