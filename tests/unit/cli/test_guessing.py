"""A command that does not exist is answered with what was probably meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command_line import invoke


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("tsak list", "`tasker task`"),
        ("wroker", "`tasker worker`"),
        ("task lsit", "`tasker task list`"),
        ("task step rest 01 a", "`tasker task step reset`"),
        ("config vaildate", "`tasker config validate`"),
        ("help", "`tasker --help`"),
        ("help task", "`tasker task --help`"),
        ("task help", "`tasker task --help`"),
        ("version", "`tasker --version`"),
        ("submit shop/checkout", "`tasker task submit`"),
        ("retry 01", "`tasker task retry`"),
        ("validate x.yaml", "`tasker template validate` or `tasker config validate`"),
        ("task run hello", "`tasker run`"),
        ("task ls", "`tasker task list`"),
        ("task kill 01", "`tasker task cancel`"),
        ("init", "`tasker config init`"),
        ("submti", "`tasker task submit`"),
        ("shwo 01", "`tasker task show`"),
        ("worker lsit", "`tasker worker list`"),
        ("worker help", "`tasker worker --help`"),
    ],
)
def test_it_is_guessed(line: str, meant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = invoke(*line.split())

    assert result.exit_code == 2
    assert meant in result.stderr.partition("Did you mean ")[2].replace("cli ", "tasker "), result.stderr


@pytest.mark.parametrize("line", ["webhook list", "webhook test billing", "webhook enable billing"])
def test_a_command_of_a_plugin_that_is_off_names_the_plugin_and_how_to_turn_it_on(line: str) -> None:
    result = invoke(*line.split())

    assert result.exit_code == 2
    assert "No such command 'webhook': it belongs to the plugin webhooks, which is disabled; enable it" in result.stderr
    assert '[plugins] enabled = ["webhooks"]' in result.stderr
    assert "TASKER_PLUGINS_ENABLED" in result.stderr


def test_a_plugin_that_the_configuration_disables_is_to_be_taken_out_of_that_list(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TASKER_PLUGINS_DISABLED", "webhooks")
    assert "which is disabled; remove it from plugins.disabled and enable it in" in invoke("webhook", "list").stderr


NO_SECRET = """
[plugins]
enabled = ["webhooks"]
[[plugins.webhooks.endpoints]]
name = "billing"
url = "https://example.com/in"
"""
INVALID_SECRET = f'{NO_SECRET}secrets = ["${{UNSET_SECRET}}"]'


@pytest.mark.parametrize("settings", ["", NO_SECRET, INVALID_SECRET])
def test_secret_for_an_endpoint_is_made_before_its_plugin_can_be_on(
    settings: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "tasker.toml"
    file.write_text(settings)
    monkeypatch.setenv("TASKER_CONFIG_PATH", str(file) if settings else "")
    made, listed = invoke("webhook", "secret"), invoke("webhook", "list")

    assert (made.exit_code, made.stdout[:6], len(made.stdout)) == (0, "whsec_", 51)
    assert listed.exit_code == 2
    if settings == NO_SECRET:
        assert "the plugin webhooks, which is refused: the endpoint billing has no secret" in listed.stderr


@pytest.mark.parametrize(
    ("line", "replacement"),
    [
        ("task create", "task submit"),
        ("task get X", "task show"),
        ("health check", "doctor"),
        ("docs generate", "config docs"),
        ("config detect-unused --context worker", "config validate"),
        ("dlq purge --older-than 30", "db prune --failed-days DAYS --pending-days DAYS"),
        ("dlq prune", "db prune --failed-days DAYS --pending-days DAYS"),
    ],
)
def test_command_that_has_another_name_here_is_answered_with_that_name(line: str, replacement: str) -> None:
    result = invoke(*line.split())

    assert result.exit_code == 2
    assert f"Use `cli {replacement}`." in result.stderr


def test_what_resembles_nothing_gets_no_guess() -> None:
    assert "Error: No such command 'zzzzzz'.\n" in invoke("zzzzzz").stderr


def test_the_options_of_a_group_are_no_commands() -> None:
    assert [invoke(group, "--help").exit_code for group in ("worker", "task", "config")] == [0, 0, 0]


def test_a_folder_that_is_named_like_a_command_is_still_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lists").mkdir()

    assert "No such command" not in invoke("worker", "lists").stderr
