"""Profiles: kept for nobody else, and what of the command line and the environment names a place."""

from __future__ import annotations

import json
import resource
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tasker.cli.main import cli
from tasker.cli.render.outcome import going_on
from tasker.cli.target import ServerTarget
from tasker.client.connection import NEVER
from tasker.client.servers import (
    API_KEY,
    API_KEY_HEADER,
    TOKENS,
    Profiles,
    ServerAddress,
    profiles_file,
    read_profiles,
    server_at,
    write_profiles,
)
from tasker.errors import UsageError


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("TASKER_URL", "TASKER_PROFILE", "TASKER_TOKEN", "TASKER_API_KEY", "DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def tasker(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(cli, arguments, input=stdin)


def test_a_profile_is_kept_for_nobody_else_and_shown_without_its_secret(home: Path) -> None:
    added = tasker("profile", "add", "prod", "--url", "https://h/tasker/", "--token-file", "-", stdin='"t\\k\n')
    file = profiles_file()

    assert (added.exit_code, file) == (0, home / "tasker" / "profiles.toml")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert read_profiles(file).get("prod") == ServerAddress("https://h/tasker", token='"t\\k')
    shown = tasker("profile", "list", "--format", "json").stdout
    expected = {"name": "prod", "url": "https://h/tasker", "credentials": "token", "in_use": False}
    assert json.loads(shown) == [expected]
    assert "prod" in tasker("profile", "list").stdout


@pytest.mark.parametrize(("url", "warns"), [("http://h", True), ("https://h", False), ("http://localhost:1", False)])
def test_credentials_that_others_could_read_on_their_way_are_warned_of(home: Path, url: str, warns: bool) -> None:
    added = tasker("profile", "add", "a", "--url", url, "--api-key-file", "-", stdin="k")
    assert ("not encrypted" in added.stderr, added.exit_code) == (warns, 0)


def test_a_write_that_fails_leaves_the_profiles_as_they_were(home: Path) -> None:
    tasker("profile", "add", "prod", "--url", "https://h", "--token-file", "-", stdin="t")
    before = profiles_file().read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) // 2, limits[1]))  # as a disk that is full
    try:
        failed = tasker("profile", "add", "test", "--url", "https://other")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    assert failed.exit_code != 0
    assert f"{profiles_file()} cannot be written: File too large" in failed.output
    assert profiles_file().read_bytes() == before
    assert read_profiles(profiles_file()).get("prod") == ServerAddress("https://h", token="t")
    assert list(profiles_file().parent.iterdir()) == [profiles_file()]


def test_profiles_are_used_replaced_and_removed(home: Path) -> None:
    for arguments in (("add", "a", "--url", "http://a", "--use"), ("add", "a", "--url", "http://b"), ("use", "a")):
        assert tasker("profile", *arguments).exit_code == 0
    assert read_profiles(profiles_file()) == Profiles({"a": ServerAddress("http://b")}, "a")
    assert tasker("profile", "use", "--none").exit_code == 0
    assert read_profiles(profiles_file()).active is None
    assert tasker("profile", "remove", "a").exit_code == 0
    assert read_profiles(profiles_file()) == Profiles()


@pytest.mark.parametrize(
    "arguments",
    [
        ("use",),
        ("use", "nothing"),
        ("remove", "nothing"),
        ("check",),
        ("check", "nothing"),
        ("add", "a b", "--url", "http://a"),
        ("add", "a", "--url", "gopher://a"),
        ("add", "a", "--url", "http://a", "--token-file", "nothing"),
        ("add", "a", "--url", "http://a", "--token-file", "empty"),
        ("add", "a", "--url", "http://a", "--token-file", "secret", "--api-key-file", "secret"),
        ("add", "a", "--url", "https://a", "--ca-file", "secret"),
    ],
)
def test_a_mistake_in_a_profile_is_told_and_nothing_is_kept(home: Path, arguments: tuple[str, ...]) -> None:
    (home / "empty").write_text("\n")
    (home / "secret").write_text("secret")
    result = tasker("profile", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Error: " in result.stderr
    assert not profiles_file().exists()


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "[profiles]\na = 1",
        "[profiles.a]",
        "[profiles.a]\nurl = 1",
        "[profiles.a]\nurl = 'ftp://a'",
        "[profiles.a]\nurl = 'http://a'\npassword = 'b'",
        "active = 'b'",
        "active = 1",
        "other = 1",
    ],
)
def test_a_file_that_is_none_is_named_with_what_is_wrong(home: Path, text: str) -> None:
    profiles_file().parent.mkdir()
    profiles_file().write_text(text)
    result = tasker("task", "list")
    assert result.exit_code == 2
    assert "profile" in result.stderr or "URL" in result.stderr


def test_secrets_that_others_may_read_are_not_used(home: Path) -> None:
    write_profiles(profiles_file(), Profiles({"a": ServerAddress("http://a", api_key="k")}))
    profiles_file().chmod(0o644)
    with pytest.raises(UsageError, match="readable by other users"):
        read_profiles(profiles_file())


@pytest.mark.parametrize(
    ("arguments", "environment", "asked"),
    [
        (("--url", "http://127.0.0.1:1"), {"TASKER_PROFILE": "a"}, "127.0.0.1:1 "),
        (("--profile", "a"), {"TASKER_URL": "http://127.0.0.1:1"}, "127.0.0.1:2 "),
        ((), {"TASKER_URL": "http://127.0.0.1:1", "TASKER_PROFILE": "a"}, "127.0.0.1:1 "),
        ((), {"TASKER_PROFILE": "a"}, "127.0.0.1:2 "),
        ((), {"TASKER_PROFILE": "", "TASKER_URL": ""}, "127.0.0.1:3 "),
        ((), {"DATABASE_URL": "postgresql://127.0.0.1:4/x"}, "127.0.0.1:3 "),
        (("--data-dir", "nothing"), {"TASKER_URL": "http://127.0.0.1:1"}, "no database in"),
        (("--url", "http://h", "--profile", "a"), {}, "exclude each other"),
        (("--url", "http://h", "--database-url", "postgresql://h"), {}, "exclude each other"),
        (("--profile", "a", "--backend", "memory"), {}, "exclude each other"),
        (("--profile", "c"), {}, "expected one of: a, b"),
        (("--url", "h"), {}, "not the URL of a Tasker server"),
    ],
)
def test_what_is_named_nearest_is_asked(
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    environment: dict[str, str],
    asked: str,
) -> None:
    servers = {"a": ServerAddress("http://127.0.0.1:2"), "b": ServerAddress("http://127.0.0.1:3")}
    write_profiles(profiles_file(), Profiles(servers, "b"))
    monkeypatch.setattr("tasker.client.connection.Retries", lambda: NEVER)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    result = tasker("task", "list", *arguments)

    assert asked in result.stderr
    assert "Traceback" not in result.output


def test_the_shell_is_told_the_names_of_profiles(home: Path) -> None:
    write_profiles(profiles_file(), Profiles({"prod": ServerAddress("http://a"), "test": ServerAddress("http://b")}))
    environment = {"_TASKER_COMPLETE": "bash_complete", "COMP_WORDS": "tasker task list --profile p", "COMP_CWORD": "4"}
    found = CliRunner().invoke(cli, prog_name="tasker", env=environment)
    assert found.stdout.split() == ["plain,prod"]
    environment |= {"COMP_WORDS": "tasker dlq list --ur", "COMP_CWORD": "3"}
    assert "--url" in CliRunner().invoke(cli, prog_name="tasker", env=environment).stdout


def test_who_asks_a_server_is_told_no_command_that_needs_the_database() -> None:
    arguments = " --url http://tasker.example.com"
    assert not ServerTarget(ServerAddress("http://tasker.example.com")).runs_here
    assert going_on("task", arguments, here=False) == [
        "to watch it (workers run it):",
        f"  tasker task watch task{arguments}",
    ]
    assert "  tasker run --resume task" in going_on("task", "", here=True)


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({}, {}),
        ({"TASKER_API_KEY": "key"}, {"X-API-Key": "key"}),
        ({"TASKER_API_KEY": "key", "TASKER_API_KEY_HEADER": "X-Own"}, {"X-Own": "key"}),
        ({"TASKER_API_KEY": "key", "TASKER_TOKEN": "ours"}, {"Authorization": "Bearer ours"}),
        ({"TASKER_TOKEN": "ours", "TASKER_AUTH_TOKEN": "any"}, {"Authorization": "Bearer any"}),
        (
            {"TASKER_AUTH_TOKEN": "any", "TASKER_ORCHESTRATION_AUTH_TOKEN": "theirs"},
            {"Authorization": "Bearer theirs"},
        ),
    ],
)
def test_the_nearest_credentials_of_the_environment_are_sent(
    home: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, str], sent: dict[str, str]
) -> None:
    for name in (*TOKENS, API_KEY, API_KEY_HEADER):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)

    assert server_at("https://h").headers() == sent
