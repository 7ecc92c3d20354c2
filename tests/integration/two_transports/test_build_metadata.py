"""A version with build metadata (`1.0.0+build.5`) is a version like any other: by name, over HTTP, in lists."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from tasker.client import SyncHttpClient
from tests.integration.two_transports.conftest import Served

TEXT = "name: {}\nnamespace: shop\nversion: {}\nsteps: [{{name: look, handler: nobody}}]\n"


@pytest.mark.parametrize("place", ["database", "server"])
def test_versions_that_differ_in_build_metadata_are_two_versions(served: Served, tmp_path: Path, place: str) -> None:
    name, versions = f"built_on_{place}", ("1.0.0+build.5", "1.0.0+build.6")
    for version in versions:
        (tmp_path / "built.yaml").write_text(TEXT.format(name, version))
        registered = served.invoke("database", "template", "register", str(tmp_path / "built.yaml"))
        assert registered.exit_code == 0, registered.output
    tasks = [served.invoke(place, "task", "submit", f"shop/{name}:{version}").stdout.strip() for version in versions]

    for task, version in zip(tasks, versions, strict=True):
        listed = served.invoke(place, "task", "list", "--template", name, "--version", version, "--format", "json")
        assert [(row["task_uuid"], row["version"]) for row in json.loads(listed.stdout)] == [(task, version)]
        assert f"shop/{name}:{version}" in served.invoke(place, "task", "show", task).stdout
        with SyncHttpClient(served.url) as client:
            assert client.get_template("shop", name, version).version == version
        for written in (version, version.replace("+", "%2B")):
            page = httpx.get(f"{served.url}/v1/templates/shop/{name}/{written}")
            assert (page.status_code, page.json()["version"]) == (200, version)
    shown = json.loads(served.invoke(place, "template", "list", "--format", "json").stdout)
    assert {row["version"] for row in shown if row["name"] == name} == {*versions}
