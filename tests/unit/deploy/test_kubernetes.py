"""The manifests are rendered by kubectl, fit the schemas of Kubernetes, and let no container do more than it must."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from tests.docs.snippets import snippets
from tests.support.deployed import DEPLOY, KUBERNETES, OVERLAYS, rendered, scaled_by, workloads
from tests.support.repository import ROOT


def closed(required: Sequence[str] = (), **properties: Any) -> dict[str, Any]:
    """The schema of an object with these fields and no other."""
    return {"type": "object", "additionalProperties": False, "required": [*required], "properties": properties}


FOLDERS = [KUBERNETES / "migrate", *(KUBERNETES / "overlays" / name for name in OVERLAYS)]
SCALED_OBJECT = closed(
    required=["scaleTargetRef", "triggers"],
    scaleTargetRef=closed(required=["name"], name={"type": "string"}),
    minReplicaCount={"type": "integer"},
    maxReplicaCount={"type": "integer"},
    cooldownPeriod={"type": "integer"},
    triggers={
        "type": "array",
        "items": closed(
            required=["type", "metadata"],
            type={"const": "prometheus"},
            metadata=closed(
                required=["serverAddress", "query", "threshold"],
                serverAddress={"type": "string"},
                query={"type": "string"},
                threshold={"type": "string"},
            ),
        ),
    },
    advanced=closed(horizontalPodAutoscalerConfig=closed(behavior={"type": "object"})),
)
FROM_THE_SECRET = {"/run/secrets/tasker/database_url", "/run/secrets/tasker/jwt_public_key"}
STARTED = ("tasker-migrate", "tasker-orchestrator", "tasker-server", "tasker-worker")
PORTS = {"tasker-server": "8080", "tasker-orchestrator": "8082", "tasker-worker": "8081"}


def of_kind(folder: str, kind: str) -> list[dict[str, Any]]:
    return [each for each in rendered(KUBERNETES / folder) if each["kind"] == kind]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_each_resource_fits_its_schema(folder: Any) -> None:
    checked = [each for each in rendered(folder) if not each["apiVersion"].startswith("keda.sh/")]
    assert checked
    for resource in checked:
        kubernetes_validate.validate(resource, "1.37", strict=True)


def test_the_scaler_of_keda_has_the_fields_that_keda_knows() -> None:
    """Of keda.sh/v1alpha1, which no package has a schema of; below `behavior` it is Kubernetes' own."""
    (scaler,) = of_kind("overlays/keda", "ScaledObject")
    jsonschema.validate(scaler["spec"], SCALED_OBJECT)
    scale = {"scaleTargetRef": {"kind": "Deployment", **scaler["spec"]["scaleTargetRef"]}, "maxReplicas": 20}
    behavior = scaler["spec"]["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
    autoscaler = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": scaler["metadata"]}
    kubernetes_validate.validate({**autoscaler, "spec": {**scale, "behavior": behavior}}, "1.37", strict=True)


def test_what_is_started_is_all_that_the_tests_below_look_at() -> None:
    assert sorted(workloads()) == list(STARTED)


@pytest.mark.parametrize("name", STARTED)
def test_a_container_is_not_root_writes_nothing_and_has_limits(name: str) -> None:
    pod = workloads()[name]["spec"]
    (container,) = pod["containers"]
    assert (pod["securityContext"]["runAsNonRoot"], pod["securityContext"]["runAsUser"]) == (True, 10001)
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert set(container["resources"]["limits"]) == set(container["resources"]["requests"]) == {"cpu", "memory"}
    assert {"name": "tmp", "mountPath": "/tmp"} in container["volumeMounts"]


@pytest.mark.parametrize("name", STARTED)
def test_secrets_are_those_of_the_user_and_come_as_files(name: str) -> None:
    pod = workloads()[name]["spec"]
    (container,) = pod["containers"]
    assert [volume["secret"]["secretName"] for volume in pod["volumes"] if "secret" in volume] == ["tasker"]
    assert {each["value"] for each in container["env"] if each["value"].startswith("/run/")} <= FROM_THE_SECRET
    assert not [each for folder in FOLDERS for each in rendered(folder) if each["kind"] == "Secret"]


@pytest.mark.parametrize("name", PORTS)
def test_a_process_that_answers_is_probed_and_scraped_and_replaced_before_it_ends(name: str) -> None:
    (deployment,) = [each for each in of_kind("overlays/hpa", "Deployment") if each["metadata"]["name"] == name]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    asked = {key: probe["httpGet"]["path"] for key, probe in container.items() if key.endswith("Probe")}
    assert asked == {"startupProbe": "/live", "livenessProbe": "/live", "readinessProbe": "/ready"}
    assert deployment["spec"]["template"]["metadata"]["annotations"]["prometheus.io/port"] == PORTS[name]
    assert deployment["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 0


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_services_budgets_and_policies_choose_pods_that_exist(overlay: str) -> None:
    folder = f"overlays/{overlay}"
    labels = [template["metadata"]["labels"] for template in workloads().values()]
    services = [each["spec"]["selector"] for each in of_kind(folder, "Service")]
    budgets = [each["spec"]["selector"]["matchLabels"] for each in of_kind(folder, "PodDisruptionBudget")]
    policies = [each["spec"]["podSelector"]["matchLabels"] for each in of_kind(folder, "NetworkPolicy")]
    assert (len(services), len(budgets), len(policies)) == (1, 3, 3)
    for chosen in [*services, *budgets, *policies]:
        assert chosen["app.kubernetes.io/name"] == "tasker"
        assert any(chosen.items() <= each.items() for each in labels)


def test_nothing_comes_in_or_goes_out_but_what_is_allowed() -> None:
    closed = [each["spec"] for each in of_kind("overlays/hpa", "NetworkPolicy") if "egress" in each["spec"]]
    (everything,) = closed
    assert everything["policyTypes"] == ["Ingress", "Egress"]
    assert everything["podSelector"]["matchLabels"] == {"app.kubernetes.io/name": "tasker"}
    assert {port["port"] for rule in everything["egress"] for port in rule["ports"]} == {53, 5432}


@pytest.mark.parametrize(("overlay", "kind"), [("hpa", "HorizontalPodAutoscaler"), ("keda", "ScaledObject")])
def test_workers_alone_are_scaled_and_by_one_scaler(overlay: str, kind: str) -> None:
    folder = f"overlays/{overlay}"
    scalers = [each for other in ("HorizontalPodAutoscaler", "ScaledObject") for each in of_kind(folder, other)]
    assert [(each["kind"], each["spec"]["scaleTargetRef"]["name"]) for each in scalers] == [(kind, "tasker-worker")]
    scaled = [each["metadata"]["name"] for each in of_kind(folder, "Deployment") if "replicas" not in each["spec"]]
    assert scaled == ["tasker-worker"]


def test_keda_asks_for_metrics_that_the_documentation_has() -> None:
    told = (ROOT / "docs" / "reference" / "metrics.md").read_text("utf-8")
    assert scaled_by() == {"tasker_workers_recommended"}
    assert all(f"| `{name}` |" in told for name in scaled_by())


def test_the_overlay_that_the_guide_shows_renders_with_the_image_of_the_project(tmp_path: Any) -> None:
    (tmp_path / "deploy").symlink_to(DEPLOY)
    page = (ROOT / "docs" / "deploying.md").read_text("utf-8")
    (shown,) = [block.text for block in snippets(page) if "kind: Kustomization" in block.text]
    (tmp_path / "kustomization.yaml").write_text(shown)
    deployments = [each for each in rendered(tmp_path) if each["kind"] == "Deployment"]
    images = {each["spec"]["template"]["spec"]["containers"][0]["image"] for each in deployments}
    assert images == {f"{yaml.safe_load(shown)['images'][0]['newName']}:1.4.0"}
