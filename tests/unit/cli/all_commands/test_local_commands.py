"""What commands print that need neither a database nor a server."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tasker.cli.main import cli
from tasker.version import __version__ as RELEASE
from tests.support.recorded import assert_recorded
from tests.unit.cli.all_commands.tree import PLUGINS

COMMANDS = """
plugin list
plugin list --format json
plugin show prometheus
plugin show prometheus --format json
plugin show prometeus
profile list
profile add prod --url https://tasker.example --token-file secret
profile add open --url http://tasker.example/ --api-key-file secret
profile add broken --url tasker.example
profile add broken
profile list
profile use prod
profile use prd
profile list --format json
profile list
profile check --profile prd
profile add sealed --url https://tasker.example --ca-file nothing
profile remove open
profile remove open
profile list --format json
config init
config init
config init --source-dir again --format json
config validate
config validate --environment production --format json
config validate --environment nothing
config validate --source-dir nowhere
config show common.database
config show comon.database
config show --context worker --format json worker
config explain common.database.pool.max_connections
config explain common.database.pool.max_conections
config explain common.backoff --format json
config diff development
config diff development production --format json
config generate --context worker --output merged.toml
config generate --context worker --environment production
config explain common.database.url --file merged.toml
config diff development merged.toml
config show common.queues.pgmq --file merged.toml
config show common.queues.pgmq --file merged.toml --context orchestration
config show common.queues.pgmq --file merged.toml --environment production
config generate --context worker --output config/tasker/worker-test.toml
config generate --context worker --output config/tasker/comon.toml
config generate --context worker --output config/tasker/base/comon.toml
config validate --format json
config validate --environment test
auth show-permissions
auth show-permissions --format json
auth create-api-key --name ada --permissions tasks:red
auth validate-token --token nonsense
new hello
new hello
new second --dir secret/below
template validate hello
template register
template graph hello
template show nothing
task list --profile nothing
worker start --namespace
tsk list
task lst
task list --limt 3
task list --limit many
task list --status done
task list --since yesterday
run
run nothing
dlq replay
schedule create nonsense
db prune
""".strip().splitlines()


ENVIRONMENT = (
    "DATABASE_URL",
    "TASKER_URL",
    "TASKER_PROFILE",
    "TASKER_TOKEN",
    "TASKER_API_KEY",
    "TASKER_ENV",
    "SENTRY_DSN",
)


def test_commands_print_what_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("TASKER_PLUGINS_ENABLED", PLUGINS)
    monkeypatch.setenv("COLUMNS", "80")
    for name in (
        "DATABASE_URL",
        "TASKER_URL",
        "TASKER_PROFILE",
        "TASKER_TOKEN",
        "TASKER_API_KEY",
        "TASKER_ENV",
        "SENTRY_DSN",
    ):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "secret").write_text("key")
    blocks = []
    for command in COMMANDS:
        result = CliRunner().invoke(cli, command.split(), prog_name="tasker")
        assert isinstance(result.exception, SystemExit | None), command
        errors = "".join(f"stderr: {line}\n" for line in result.stderr.splitlines())
        blocks.append(f"$ tasker {command}  # exit {result.exit_code}\n{result.stdout}{errors}")
    text = "\n".join(blocks).replace(str(tmp_path), "").replace(RELEASE, "RELEASE")
    assert_recorded(".", {"local_commands": text})
