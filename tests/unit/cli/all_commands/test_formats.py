"""What a command prints can be had as JSON: of all commands, so that none is forgotten."""

from __future__ import annotations

import click
import pytest

from tests.unit.cli.all_commands.tree import PLUGINS, commands, option

UNTIL_STOPPED = "works until it is stopped, and tells log lines (--log-format json)"
TEXT_ONLY = {
    "dev": UNTIL_STOPPED,
    "server": UNTIL_STOPPED,
    "orchestrator": UNTIL_STOPPED,
    "worker start": UNTIL_STOPPED,
    "completion": "a script for a shell",
    "config docs": "a page of Markdown",
    "db sql": "a script for psql",
    "generate schema": "JSON Schemas, which are JSON whatever is asked for",
    "template schema": "a JSON Schema, which is JSON whatever is asked for",
}
"""The commands without `--format json`, and why."""


@pytest.fixture(autouse=True)
def every_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKER_PLUGINS_ENABLED", PLUGINS)


def test_every_command_that_prints_a_result_offers_it_as_json() -> None:
    lacking = [name for name, command in commands().items() if not _offers_json(command)]
    assert sorted(lacking) == sorted(TEXT_ONLY)


def test_the_commands_of_plugins_are_among_them() -> None:
    assert {"webhook list", "webhook secret"} < commands().keys()


def test_json_is_never_what_comes_by_default() -> None:
    formats = {name: option(command, "--format") for name, command in commands().items()}
    assert [name for name, found in formats.items() if found and found.default == "json"] == []


def _offers_json(command: click.Command) -> bool:
    found = option(command, "--format")
    return found is not None and isinstance(found.type, click.Choice) and "json" in found.type.choices
