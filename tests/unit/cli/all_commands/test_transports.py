"""Every command asks a server where one is named, or there is a reason why it does not."""

from __future__ import annotations

import pytest

from tasker.cli.suggestions import DIRECTLY
from tests.unit.cli.all_commands.tree import PLUGINS, commands, option

OF_PLUGINS = {"webhook secret": "it is random, and asks nobody"}


@pytest.fixture(autouse=True)
def every_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKER_PLUGINS_ENABLED", PLUGINS)


def test_every_command_has_both_transports_or_a_reason() -> None:
    both = {name for name, command in commands().items() if option(command, "--profile")}
    assert commands().keys() - both == DIRECTLY.keys() | OF_PLUGINS.keys()


def test_a_command_that_asks_a_server_names_the_database_as_well() -> None:
    for name, command in commands().items():
        if option(command, "--profile"):
            assert option(command, "--url"), name
            assert option(command, "--database-url"), name
