"""The page on deployment modes says what the code does."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from tasker.messaging.backends import load_backend
from tasker.messaging.listening_modes import DeploymentMode, HealthStatus, effective_mode
from tasker.settings.catalogue import by_path
from tasker.settings.check import check

PAGE = (Path(__file__).parents[2] / "docs" / "deployment-modes.md").read_text()
SHORT = ("worker.event_systems.worker.", "worker.event_systems.worker.metadata.", "")


def rows() -> list[list[str]]:
    return [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line[:1] == "|"]


def test_the_table_of_effective_modes_is_that_of_the_code() -> None:
    start = next(number for number, row in enumerate(rows()) if row[0] == "configured")
    backends = rows()[start][1:]
    written = {row[0]: row[1:] for row in rows()[start + 2 : start + 5]}
    assert set(backends) == {"pgmq", "memory", "rabbitmq", "redis", "nats"}
    assert written == {
        str(mode): [str(effective_mode(mode, load_backend(name, {}).capabilities)) for name in backends]
        for mode in DeploymentMode
    }


def test_every_level_of_health_is_explained() -> None:
    assert {str(status) for status in HealthStatus} <= {row[0] for row in rows()}


def test_the_settings_it_names_exist() -> None:
    named = set(re.findall(r"`((?:[a-z_]+\.)+[a-z_]+)`", PAGE)) - {"tasker.events", "handlers.py"}
    assert len(named) > 10
    assert not [name for name in named if not any(f"{start}{name}" in by_path() for start in SHORT)]


def test_its_configuration_is_valid() -> None:
    blocks = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    assert [check(tomllib.loads(block)).problems for block in blocks] == [(), ()]
