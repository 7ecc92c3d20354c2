"""The chart is linted and rendered by helm, and installs what the manifests for kustomize do."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from tasker.process.stopping import grace_of
from tasker.settings.defaults import LONGEST_OPTION_SECONDS
from tests.docs.snippets import snippets
from tests.support.deployed import DEPLOY, KUBERNETES, parse, rendered
from tests.support.repository import ROOT

CHART = DEPLOY / "helm" / "tasker"
VALUES = {"image": {"repository": "tasker", "tag": "1.4.0"}}
OURS = ("imagePullPolicy", "image")


@cache
def helm() -> Any:
    """Not on every machine: its wheels are for some."""
    return pytest.importorskip("helm_python", reason="helm-python-sdk is not installed: python tools/install.py dev")


def installed(**values: Any) -> dict[tuple[str, str], dict[str, Any]]:
    """What `helm install tasker` would send, by kind and name."""
    with helm().Chart.load(str(CHART)) as chart:
        files: Mapping[str, str] = chart.render({**VALUES, **values}, name="tasker", namespace="shop")
    documents = [each for name, text in files.items() if name.endswith(".yaml") for each in yaml.safe_load_all(text)]
    return {(each["kind"], each["metadata"]["name"]): each for each in documents if each}


def alike(resource: Any) -> Any:
    """Without what only one way of installing has: labels of a release, the image, the order of variables."""
    if isinstance(resource, list):
        named = all(isinstance(each, dict) and "name" in each for each in resource)
        found = [alike(each) for each in resource]
        return sorted(found, key=lambda each: str(each["name"])) if named else found
    if not isinstance(resource, dict):
        return resource
    left_out = (*OURS, "app.kubernetes.io/instance")
    return {key: alike(value) for key, value in resource.items() if key not in left_out}


@pytest.mark.parametrize("by", ["hpa", "keda"])
def test_it_installs_what_the_manifests_do(by: str) -> None:
    manifests = {(each["kind"], each["metadata"]["name"]): each for each in rendered(KUBERNETES / "overlays" / by)}
    (job,) = rendered(KUBERNETES / "migrate")
    manifests["Job", job["metadata"]["name"]] = job
    chart = installed(scaling={"by": by})
    assert chart.keys() == manifests.keys()
    for name, resource in manifests.items():
        assert alike(chart[name]["spec"]) == alike(resource["spec"]), name


def test_helm_finds_nothing_to_complain_of() -> None:
    found = helm().lint(str(CHART), VALUES, strict=True)
    assert found["errors"] == []
    assert [each["error"] for each in found["messages"]] == ["icon is recommended"]


@pytest.mark.parametrize("by", ["hpa", "none"])
def test_each_resource_fits_its_schema(by: str) -> None:
    for resource in installed(scaling={"by": by}).values():
        kubernetes_validate.validate(resource, "1.37", strict=True)


@pytest.mark.parametrize("seconds", [1, 293, 294, LONGEST_OPTION_SECONDS - 7])
def test_a_worker_has_time_for_its_longest_step_and_the_pod_for_more_than_that(seconds: int) -> None:
    pod = installed(worker={"longestStepSeconds": seconds})["Deployment", "tasker-worker"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    parse(container["args"])
    environment = {each["name"]: each["value"] for each in container["env"]}
    stop = int(environment["TASKER_SHUTDOWN_TIMEOUT_MS"]) / 1000
    if "--shutdown-timeout" in container["args"]:
        stop = int(container["args"][container["args"].index("--shutdown-timeout") + 1])
    assert seconds <= grace_of(stop) or seconds < 7
    assert pod["terminationGracePeriodSeconds"] > stop


def test_the_migration_ends_before_anything_else_begins() -> None:
    hooks = installed()["Job", "tasker-migrate"]["metadata"]["annotations"]
    assert hooks["helm.sh/hook"] == "pre-install,pre-upgrade"
    assert ("Job", "tasker-migrate") not in installed(migration={"enabled": False})


def test_no_secret_is_installed_and_none_can_be_a_value() -> None:
    assert "Secret" not in {kind for kind, _ in installed()}
    assert "password" not in (CHART / "values.yaml").read_text("utf-8").replace("default password", "")


REFUSED: list[dict[str, Any]] = [
    {"image": {"repository": "", "tag": "1.4.0"}},
    {"image": {"repository": "tasker", "tag": "latest"}},
    {"worker": {"longestStepSeconds": 3594}},
    {"scaling": {"by": "moon"}},
    {"scaling": {"maximum": 3}},
    {"environment": {"DATABASE_URL": "postgresql://u:p@h/d"}},
    {"environment": {"lower": "case"}},
    {"secret": ""},
    {"replicas": 3},
]


@pytest.mark.parametrize("values", REFUSED, ids=str)
def test_a_value_that_cannot_work_is_refused_where_it_stands(values: dict[str, Any]) -> None:
    validator = jsonschema.Draft7Validator(json.loads((CHART / "values.schema.json").read_text("utf-8")))
    defaults = yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))
    assert not [*validator.iter_errors({**defaults, **VALUES})]
    assert [*validator.iter_errors({**defaults, **VALUES, **values})]
    with helm().Chart.load(str(CHART)) as chart, pytest.raises(helm().HelmError, match="at '"):
        chart.validate_schema({**VALUES, **values})


def test_the_values_that_the_guide_shows_install() -> None:
    page = (ROOT / "docs" / "deploying.md").read_text("utf-8")
    (shown,) = [yaml.safe_load(block.text) for block in snippets(page) if "longestStepSeconds" in block.text]
    assert ("ScaledObject", "tasker-worker") in installed(**shown)
