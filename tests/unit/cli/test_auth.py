"""Keys and tokens from the command line: private, never overwritten, and what one command makes another one takes."""

from __future__ import annotations

import json
import stat
import tomllib
from pathlib import Path

import pytest

from tasker.operations.permissions import Permission
from tasker.server.auth.authenticator import digest
from tasker.settings.check import check
from tests.support.command_line import invoke


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys") / "new"
    assert invoke("auth", "generate-keys", "--output-dir", folder).exit_code == 0
    return folder


def test_a_pair_is_private_and_is_never_written_over_another_one(keys: Path) -> None:
    private = keys / "jwt-private-key.pem"
    before = private.read_bytes()

    again = invoke("auth", "generate-keys", "--output-dir", keys)

    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    assert again.exit_code == 2
    assert "already exists" in again.stderr
    assert private.read_bytes() == before


def test_a_token_that_was_made_is_found_right_and_told(keys: Path) -> None:
    options = ["--subject", "ada", "--permissions", "tasks:*, steps:read", "--namespaces", "shop"]
    made = invoke(
        "auth", "generate-token", "--private-key", keys / "jwt-private-key.pem", *options, "--expiry-hours", "2"
    )
    token = made.stdout.strip()
    check_it = ["auth", "validate-token", "--public-key", keys / "jwt-public-key.pem", "--format", "json", "--token"]

    told = json.loads(invoke(*check_it, token).stdout)

    assert (told["subject"], told["permissions"], told["namespaces"]) == ("ada", ["steps:read", "tasks:*"], ["shop"])
    wrong = invoke(*check_it, f"{token[:-6]}AAAAAA")
    assert wrong.exit_code == 1
    assert "Invalid token" in wrong.stdout + wrong.stderr


@pytest.mark.parametrize("command", ["generate-token", "create-api-key"])
def test_a_permission_that_does_not_exist_is_refused(command: str, keys: Path) -> None:
    who = ["--subject", "ada"] if command == "generate-token" else ["--name", "ada"]
    answer = invoke("auth", command, *who, "--permissions", "tasks:read,tasks:fly")

    assert answer.exit_code == 2
    assert "no such permission: tasks:fly" in answer.stderr


def test_a_key_comes_with_the_configuration_that_knows_it_by_its_digest() -> None:
    answer = invoke("auth", "create-api-key", "--name", "ci", "--permissions", "tasks:create", "--namespaces", "shop")
    key, _, configuration = answer.stdout.partition("\n")

    settings = check(tomllib.loads(configuration)).settings
    assert settings is not None
    (entry,) = settings.orchestration.web.auth.api_keys
    assert (entry.key, entry.name, entry.permissions, entry.namespaces) == (
        digest(key), "ci", ("tasks:create",), ("shop",),
    )  # fmt: skip
    assert key not in configuration


def test_every_permission_is_shown_with_its_meaning() -> None:
    shown = json.loads(invoke("auth", "show-permissions", "--format", "json").stdout)
    assert set(shown) == set(Permission)
    assert all(shown.values())
    assert "tasks:*" in invoke("auth", "show-permissions").stdout
