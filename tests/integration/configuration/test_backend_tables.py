"""Settings of messaging backends: those that the settings know, and those of a stranger."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tasker.app.configured import configured, from_environment
from tasker.errors import MessagingError
from tasker.messaging import load_backend
from tasker.services.configuration.loading import ConfigurationInvalid, assemble
from tasker.services.configuration.sources import ConfigurationLayer, read_layer
from tasker.settings.check import check
from tasker.settings.nested import nested
from tasker.settings.table import Table
from tasker_nats.settings import NatsSettings
from tasker_nats.table import NatsTable
from tasker_rabbitmq.settings import RabbitmqSettings
from tasker_rabbitmq.table import RabbitmqTable
from tasker_redis.settings import RedisSettings
from tasker_redis.table import RedisTable
from tests.support.strangers import install_backend

Write = Callable[[str, str], Path]

KNOWN: list[tuple[str, type[Table], Any, set[str]]] = [
    ("rabbitmq", RabbitmqTable, RabbitmqSettings, {"clock"}),
    ("redis", RedisTable, RedisSettings, set()),
    ("nats", NatsTable, NatsSettings, set()),
]
PIGEON = """
import tasker_memory
from tasker.errors import MessagingError

def create(settings):
    if unknown := {*settings} - {"loft", "channel", "since", "auth_token", "wide key"}:
        raise MessagingError(f"carrier_pigeon has no setting {', '.join(unknown)}", hint="there is: loft")
    if not isinstance(settings.get("loft", ""), str):
        raise ValueError("loft is no text")
    return tasker_memory.create({})
"""


@pytest.fixture
def pigeon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_backend(tmp_path, monkeypatch, "pigeons", "carrier_pigeon", "pigeon_post", PIGEON)


def layer(tmp_path: Path, text: str) -> ConfigurationLayer:
    file = tmp_path / "worker.toml"
    file.write_text(text)
    return read_layer(file)


@pytest.mark.parametrize(("name", "table", "own", "internal"), KNOWN, ids=[known[0] for known in KNOWN])
def test_the_settings_say_what_the_backend_does_without_them(
    name: str, table: type[Table], own: Any, internal: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("RABBITMQ_URL", "TASKER_REDIS_URL", "NATS_URL"):
        monkeypatch.delenv(variable, raising=False)
    defaults = {field.name: getattr(own(), field.name) for field in fields(own) if field.name not in internal}
    assert table().to_dict() == defaults
    assert load_backend(name, table().to_dict()).provider_name() == name


@pytest.mark.parametrize("name", ["rabbitmq", "redis", "nats"])
def test_only_what_is_set_reaches_the_backend(name: str) -> None:
    settings = check(nested({f"common.queues.{name}.prefix": "shop"})).settings
    assert settings is not None
    assert configured(settings).backend_settings == {name: {"prefix": "shop"}}


def test_the_queues_have_a_variable_of_their_own_beside_the_cache() -> None:
    made = from_environment(environ={"TASKER_REDIS_URL": "redis://queues/1", "REDIS_URL": "redis://cache/0"})
    assert made.backend_settings == {"redis": {"url": "redis://queues/1"}}


@pytest.mark.parametrize(
    ("path", "value", "issue"),
    [
        ("common.queues.redis.url", "http://somewhere", "begins with redis://"),
        ("common.queues.nats.url", "redis://somewhere", "begins with nats://"),
        ("common.queues.nats.prefix", "a.b", "other than letters, digits and '_'"),
        ("common.queues.redis.prefx", "shop", "This setting does not exist"),
    ],
)
def test_a_setting_that_the_backend_would_refuse_is_found_before(path: str, value: str, issue: str) -> None:
    (problem,) = check(nested({path: value})).problems
    assert (problem.path, issue in problem.issue) == (path, True)


@pytest.mark.parametrize("url", ["unix:///run/redis.sock", "rediss://:secret@host:6380/2"])
def test_every_kind_of_address_of_redis_is_accepted(url: str) -> None:
    assert not check(nested({"common.queues.redis.url": url})).problems


def test_a_table_of_an_installed_backend_without_a_model_reaches_it_as_it_is(pigeon: None, tmp_path: Path) -> None:
    text = '[common.queues]\nbackend = "carrier_pigeon"\n[common.queues.carrier_pigeon]\nloft = "${LOFT:-roof}"\n'
    found = assemble("worker", "test", [layer(tmp_path, text)], {"LOFT": "tower"})
    made = configured(found.settings, found.backends)
    assert (made.backend, made.backend_settings) == ("carrier_pigeon", {"carrier_pigeon": {"loft": "tower"}})


@pytest.mark.parametrize(
    ("line", "issue", "fix"),
    [("lofft = 1", "carrier_pigeon has no setting lofft", "there is: loft"), ("loft = 1", "loft is no text", "See")],
)
def test_what_such_a_backend_refuses_is_a_problem_with_its_place(
    pigeon: None, tmp_path: Path, line: str, issue: str, fix: str
) -> None:
    text = f"[common.queues]\n[common.queues.carrier_pigeon]\n{line}\n[common.sweep]\nslicee = 1\n"
    with pytest.raises(ConfigurationInvalid) as caught:
        assemble("worker", "test", [layer(tmp_path, text)], {})
    by_path = {problem.path: problem for problem in caught.value.problems}
    problem = by_path["common.queues.carrier_pigeon"]
    assert issue in problem.issue
    assert problem.fix.startswith(fix)
    assert problem.place == f"{tmp_path}/worker.toml:2"
    assert "common.sweep.slicee" in by_path


def test_a_table_of_a_backend_that_is_not_installed_is_an_unknown_setting(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationInvalid) as caught:
        assemble("worker", "test", [layer(tmp_path, "[common.queues.carrier_pigeon]\nloft = 1\n")], {})
    (problem,) = caught.value.problems
    assert (problem.path, problem.issue) == ("common.queues.carrier_pigeon", "This setting does not exist")


def test_a_setting_that_the_memory_backend_does_not_know_is_a_problem(tmp_path: Path) -> None:
    told = r"common\.queues\.memory\.x\n.*\nIssue: This setting does not exist\nFix: .* max_depth"
    with pytest.raises(ConfigurationInvalid, match=told):
        assemble("complete", "test", [layer(tmp_path, "[common.queues.memory]\nx = 1\n")], {})


def test_a_backend_refuses_what_it_does_not_know_by_itself() -> None:
    with pytest.raises(MessagingError, match="redis has no setting prefx"):
        load_backend("redis", {"prefx": "shop"})


def test_such_a_table_is_shown_and_compared_without_its_secrets(
    pigeon: None, run: Callable[..., Result], write: Write
) -> None:
    keys = 'loft = "%s"\nsince = 2020-01-0%d\nauth_token = "hunter%d"\n"wide key" = [{ ring = 1, password = "x" }]\n'
    one, two = (
        write(f"{n}.toml", "[common.queues.carrier_pigeon]\n" + keys % (name, n, n))
        for n, name in ((1, "roof"), (2, "cellar"))
    )
    whole = run("show", "--file", one)
    part = run("show", "common.queues.carrier_pigeon", "--file", one)
    as_json = json.loads(run("show", "common.queues.carrier_pigeon", "--file", one, "--format", "json").output)
    assert part.output == (
        '[common.queues.carrier_pigeon]\nloft = "roof"\nsince = 2020-01-01\nauth_token = "***REDACTED***"\n'
        '"wide key" = [{ring = 1, password = "***REDACTED***"}]\n'
    )
    assert part.output in whole.output
    assert as_json["values"]["loft"] == "roof"
    different = run("diff", one, two)
    assert different.exit_code == 1
    assert 'common.queues.carrier_pigeon.loft: "roof" -> "cellar"' in different.output
    assert "since: 2020-01-01 -> 2020-01-02" in different.output
    assert "hunter" not in part.output + whole.output + different.output
    assert "not set" in run("diff", one, write("empty.toml", "")).output
