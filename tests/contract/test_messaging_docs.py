"""The snippets of docs/messaging.md do what the page says."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tasker.cli.commands.broker import COLUMNS
from tasker.messaging import load_backend
from tasker.settings.catalogue import by_path
from tasker.settings.check import check
from tasker.settings.nested import nested
from tests.support.command_line import invoke
from tests.support.servers.providers import Providers
from tests.support.strangers import install_backend

PAGE = (Path(__file__).parents[2] / "docs" / "messaging.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_suite_of_the_page_runs_and_passes(tmp_path: Path) -> None:
    _, suite = blocks("python")
    (tmp_path / "test_pigeon.py").write_text(suite)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null", "test_pigeon.py"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert (
        " passed, 8 skipped" in run.stdout
    )  # transactional, three that need a second process, four that restart a server
    for method in ("another", "restart"):
        assert re.search(rf"NOT TESTED on TestCarrierPigeon: .*; override {method}\(\)", run.stdout)


def test_the_declaration_of_the_page_is_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    declaration, _ = blocks("python")
    source = f"from tasker_memory import create\n{declaration}"
    install_backend(tmp_path, monkeypatch, "pigeons", "carrier_pigeon", "pigeon_table", source)
    assert by_path()["common.queues.carrier_pigeon.url"].variables == ("PIGEON_URL",)
    (problem,) = check(nested({"common.queues.carrier_pigeon.pigeons": 101})).problems
    assert problem.fix == "Reduce to 100 or less"


def test_the_toml_of_the_page_is_configuration_or_names_the_entry_point() -> None:
    settings, project = (tomllib.loads(text) for text in blocks("toml"))
    assert not check(settings).problems
    assert project["project"]["entry-points"]["tasker.backends"]


def test_the_commands_of_the_page_do_well(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    providers = Providers(tmp_path / "configuration.toml", "none")
    providers.need("redis")
    monkeypatch.setenv("TASKER_CONFIG_PATH", str(providers.file))
    commands = re.findall(r"^\$ tasker (.*)$", "\n".join(blocks("console")), re.MULTILINE)
    results = {command: invoke(*shlex.split(command), database=database_url) for command in commands}
    providers.remove()
    assert len(commands) > 4
    assert {command: result.output for command, result in results.items() if result.exit_code} == {}


def test_the_table_of_the_page_says_what_each_backend_can_do() -> None:
    section = PAGE.partition("## Which one")[2].partition("\n## ")[0]
    head, *rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    names = [re.sub(r"[` ]|\(default\)", "", cell) for cell in head]
    told = [(re.findall(r"`(\w+)`", cells), answers) for cells, *answers in rows]
    for place, name in enumerate(names):
        able = load_backend(name, {}).capabilities
        wrong = [
            (name, capability)
            for capabilities, answers in told
            for capability in capabilities
            if getattr(able, capability) != (answers[place] not in ("no", "not needed"))
        ]
        assert not wrong


def test_the_example_shows_the_columns_of_the_command() -> None:
    (shown,) = blocks("text")
    assert " ".join(shown.splitlines()[2].split()) == " ".join(COLUMNS)
