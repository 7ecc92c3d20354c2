"""A generated file and its sources: what differs is refused, what would be refused later is not generated."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.configuration.test_config_check import Run, Write

ROOT = {"TASKER_CONFIG_ROOT": "config"}
GENERATE = ("generate", "--context", "worker", "--environment", "development")
COMMON = "config/tasker/base/common.toml"
PLUGINS = "config/tasker/base/plugins.toml"


def test_configuration_below_the_root_is_checked_before_anything_was_generated_from_it(run: Run) -> None:
    assert run("init").exit_code == 0

    done = run("validate", **ROOT)

    assert done.exit_code == 0, done.output
    assert "Configuration is valid!" in done.stdout
    assert "nothing was generated from it" in done.stderr


def test_generated_file_whose_sources_were_edited_is_refused_by_name(run: Run, tmp_path: Path) -> None:
    run("init")
    assert run(*GENERATE).exit_code == 0
    assert run("validate", **ROOT).exit_code == 0
    file = tmp_path / COMMON
    file.write_text(file.read_text().replace("TASKER_MESSAGING_BACKEND:-pgmq", "TASKER_MESSAGING_BACKEND:-memory"))

    for command in (["validate"], ["show", "common.queues.backend", "--context", "worker"]):
        done = run(*command, **ROOT)
        assert done.exit_code == 1
        assert "; different: common.queues.backend\n" in done.stderr
        assert "tasker config generate --context worker --environment development" in done.stderr
    assert run(*GENERATE).exit_code == 0
    assert run("validate", **ROOT).exit_code == 0


ENDPOINT = '[plugins]\nenabled = ["webhooks", "absent"]\n[plugins.absent]\na = 1\n[[plugins.webhooks.endpoints]]\n'


@pytest.mark.parametrize(
    ("endpoint", "problem"),
    [
        ('name = "A B"\nurl = "https://x/"', "plugins.webhooks.endpoints[0].name"),
        ('name = "b"\nurl = "http://x/"', "plugins.webhooks"),
        ('name = "b"\nurl = "ftp://x/"\nsecrets = ["${NOT_SET_HERE}"]', "plugins.webhooks.endpoints[0].url"),
    ],
)
def test_settings_of_an_installed_plugin_are_checked_when_a_file_is_generated(
    run: Run, write: Write, endpoint: str, problem: str
) -> None:
    run("init")
    write(PLUGINS, ENDPOINT + endpoint)

    done = run(*GENERATE)

    assert done.exit_code == 1
    assert problem in done.stderr
    assert "absent" not in done.stderr


def test_plugins_and_secrets_that_only_the_target_machine_has_are_generated(run: Run, write: Write) -> None:
    run("init")
    write(PLUGINS, ENDPOINT + 'name = "b"\nurl = "https://x/"\nsecrets = ["${NOT_SET_HERE}"]')

    done = run(*GENERATE)

    assert done.exit_code == 0, done.output
    assert "${NOT_SET_HERE}" in Path("config/tasker/generated/worker-development.toml").read_text()


@pytest.mark.parametrize(
    ("auth", "problem"),
    [
        ("enabled = true", "orchestration.web.auth.enabled"),
        ('enabled = true\njwt_verification_method = "jwks"', "orchestration.web.auth.jwks_url"),
        ('enabled = true\napi_keys = [{key = "k", permissions = ["*"]}]', "orchestration.web.auth.enabled"),
    ],
)
def test_authentication_that_lets_nobody_in_is_a_problem_of_the_configuration(
    run: Run, write: Write, auth: str, problem: str
) -> None:
    file = write("orchestration.toml", f"[orchestration.web.auth]\n{auth}\n")

    done = run("validate", "--context", "orchestration", "--file", str(file))

    assert done.exit_code == 1
    assert f"Validation Error: {problem}\n" in done.stdout + done.stderr


def test_settings_that_are_refused_are_never_suggested(run: Run, write: Write) -> None:
    file = write("worker.toml", "[worker.grcp]\nenabled = true\n[common.cahce]\nx = 1\n")

    done = run("validate", "--context", "worker", "--file", str(file))

    assert "This setting does not exist" in done.output
    assert "worker.grpc" not in done.output
    assert "common.cache" not in done.output
