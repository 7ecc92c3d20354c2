"""The page for operators: units and services start commands that exist, and stop them as they must be stopped."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from tasker.process.connections import ORCHESTRATOR, WORKER
from tasker.settings.catalogue import by_path
from tests.docs.snippets import read_ini, snippets
from tests.support.deployed import parse

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "running-a-fleet.md").read_text("utf-8")
BLOCKS = snippets(PAGE)
UNITS = [read_ini(block.text) for block in BLOCKS if block.language == "ini"]
(COMPOSE,) = [yaml.safe_load(block.text) for block in BLOCKS if block.language == "yaml"]
OURS = {name: service for name, service in COMPOSE["services"].items() if "build" in service}
SHUTDOWN_SECONDS = int(by_path()["orchestration.shutdown_timeout_ms"].default) / 1000


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands name workflows of the repository."""
    monkeypatch.chdir(ROOT)


def values(unit: list[tuple[str, str, str]], key: str) -> list[str]:
    return [value for _, name, value in unit if name == key]


def seconds(text: str) -> float:
    return float(text.removesuffix("s"))


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: values(unit, "Description")[0])
def test_a_unit_starts_a_command_that_exists_and_stops_only_its_main_process(unit: list[tuple[str, str, str]]) -> None:
    (start,) = values(unit, "ExecStart")
    program, *words = shlex.split(start)
    assert Path(program).name == "tasker"
    parse(words)
    assert values(unit, "ExecReload") == ["/bin/kill -HUP $MAINPID"]
    assert values(unit, "KillMode") == ["mixed"]
    assert values(unit, "Restart") == ["always"]
    assert seconds(values(unit, "TimeoutStopSec")[0]) > SHUTDOWN_SECONDS


def test_there_is_a_unit_for_each_kind_of_process() -> None:
    assert [shlex.split(*values(unit, "ExecStart"))[1] for unit in UNITS] == ["orchestrator", "worker"]


@pytest.mark.parametrize("name", OURS)
def test_a_service_starts_a_command_that_exists_and_has_time_to_stop(name: str) -> None:
    service = OURS[name]
    assert service["command"][0] == "tasker"
    parse(service["command"][1:])
    assert seconds(service["stop_grace_period"]) > SHUTDOWN_SECONDS


def test_services_secrets_and_volumes_that_are_named_are_there() -> None:
    services: dict[str, Any] = COMPOSE["services"]
    assert {"postgres", "rabbitmq", "upgrade", "orchestrator", "worker"} == set(services)
    for service in services.values():
        assert set(service.get("depends_on", {})) <= set(services)
        assert set(service.get("secrets", ())) <= set(COMPOSE["secrets"])
        assert {volume.partition(":")[0] for volume in service.get("volumes", ())} <= set(COMPOSE["volumes"])


def test_the_image_makes_the_files_that_units_and_services_read() -> None:
    made = {
        f"{context}-{environment}.toml"
        for context, environment in re.findall(r"config generate --context (\w+) --environment (\w+)", PAGE)
    }
    read = {Path(path).name for path in re.findall(r"TASKER_CONFIG_PATH[=:] ?(\S+\.toml)", PAGE)}
    assert read == made == {"worker-production.toml", "orchestration-production.toml"}


def test_the_settings_it_names_exist() -> None:
    named = set(re.findall(r"`((?:common|worker|orchestration)\.[a-z_.]+)", PAGE))
    assert len(named) > 3
    assert named <= set(by_path())


def test_the_log_lines_it_names_are_written() -> None:
    code = "\n".join(path.read_text("utf-8") for path in (ROOT / "tasker").rglob("*.py"))
    table = PAGE[PAGE.index("| line | level | means |") :]
    lines = re.findall(r"^\| `([^`]+)` \| (?:ERROR|WARNING) \|", table, re.MULTILINE)
    assert len(lines) > 10
    for line in [*lines, "database_reconnected"]:
        assert re.search(rf"[\"( ]{line}[ \")]|: {line}", code), f"nothing logs {line}"


def test_its_sum_of_connections_is_that_of_the_code() -> None:
    worker, orchestrator = len(WORKER) + 1, len(ORCHESTRATOR) + 1
    assert (
        f"at most {worker} connections with `pgmq` ({worker - 1} with a broker), an orchestrator {orchestrator}" in PAGE
    )
    numbers = [int(number) for number in re.findall(r"^\| [^|]+ \| (\d+) \|$", PAGE, re.MULTILINE)]
    assert numbers == [4 * worker, 2 * orchestrator, 2 * 25, 4 * worker + 2 * orchestrator + 2 * 25]
