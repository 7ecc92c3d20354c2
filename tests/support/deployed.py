"""The processes that the files of `deploy/` start, each as its file says."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import click
import yaml

from tasker.cli.main import cli
from tests.docs.snippets import read_ini
from tests.support.repository import ROOT

DEPLOY = ROOT / "deploy"
COMPOSE = DEPLOY / "compose.yaml"
KUBERNETES = DEPLOY / "kubernetes"
OVERLAYS = ("hpa", "keda")
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
SHUTDOWN_VARIABLE = "TASKER_SHUTDOWN_TIMEOUT_MS"
KINDS = ("db", "server", "orchestrator", "worker")


@dataclass(frozen=True)
class Deployed:
    """One process: the words behind `tasker`, what is in its environment, and how long it has to end."""

    file: str
    words: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)
    grace_seconds: float | None = None
    probes: tuple[tuple[int, str], ...] = ()
    """Port and path of each question after its health."""

    @property
    def kind(self) -> str:
        """Which process it is: the first word."""
        return self.words[0]

    @property
    def port(self) -> int:
        """Where it answers: as its words say, else as `tasker.toml` does."""
        if "--port" in self.words:
            return int(self.words[self.words.index("--port") + 1])
        section = "worker" if self.kind == "worker" else "orchestration"
        return int(configured()[section]["web"]["bind_address"].rpartition(":")[2].rstrip("}"))

    @property
    def shutdown_seconds(self) -> float:
        """The limit that it gives itself."""
        (default,) = re.findall(r":-(\d+)}", configured()["orchestration"]["shutdown_timeout_ms"])
        return int(self.environment.get(SHUTDOWN_VARIABLE, default)) / 1000


def configured() -> dict[str, Any]:
    """`deploy/tasker.toml`, with its placeholders."""
    return tomllib.loads((DEPLOY / "tasker.toml").read_text("utf-8"))


def of_compose() -> dict[str, Deployed]:
    """The services of `compose.yaml`, all of which are ours."""
    services = yaml.safe_load(COMPOSE.read_text("utf-8"))["services"]
    return {name: Deployed(f"{COMPOSE.name}:{name}", *_of_service(service)) for name, service in services.items()}


def _of_service(service: dict[str, Any]) -> tuple[Any, ...]:
    asked = " ".join(service.get("healthcheck", {}).get("test", ()))
    probes = [(int(port), path) for port, path in re.findall(r"http://127\.0\.0\.1:(\d+)(/\w+)", asked)]
    grace = float(service["stop_grace_period"].removesuffix("s")) if "stop_grace_period" in service else None
    return tuple(service["command"]), service["environment"], grace, tuple(probes)


def of_systemd() -> Iterator[Deployed]:
    """The units; an instance of the worker is named after its port."""
    for unit in UNITS:
        lines = read_ini(unit.read_text("utf-8").replace("%i", "8081"))
        keys = {key: value for _, key, value in lines}
        environment = dict(value.split("=", 1) for _, key, value in lines if key == "Environment")
        program, *words = shlex.split(keys["ExecStart"])
        assert Path(program).name == "tasker"
        yield Deployed(
            unit.name, tuple(words), environment, float(keys["TimeoutStopSec"]) if "TimeoutStopSec" in keys else None
        )


@cache
def rendered(folder: Path) -> tuple[dict[str, Any], ...]:
    """What `kubectl apply --kustomize` would send."""
    command = [tool("kubectl"), "kustomize", str(folder)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    return tuple(yaml.safe_load_all(ran.stdout))


def workloads() -> dict[str, dict[str, Any]]:
    """Each pod's template, by the name of what starts it."""
    resources = [*rendered(KUBERNETES / "migrate"), *rendered(KUBERNETES / "overlays" / "hpa")]
    return {
        each["metadata"]["name"]: each["spec"]["template"]
        for each in resources
        if each["kind"] in ("Job", "Deployment")
    }


def of_kubernetes() -> Iterator[Deployed]:
    """The containers."""
    for name, template in workloads().items():
        pod = template["spec"]
        (container,) = pod["containers"]
        named = {port["name"]: port["containerPort"] for port in container.get("ports", ())}
        asked = [probe["httpGet"] for key, probe in container.items() if key.endswith("Probe")]
        yield Deployed(
            name,
            tuple(container["args"]),
            {each["name"]: each["value"] for each in container["env"]},
            pod.get("terminationGracePeriodSeconds"),
            tuple((named[probe["port"]], probe["path"]) for probe in asked),
        )


def scaled_by() -> set[str]:
    """The metrics by which KEDA scales workers."""
    (scaled,) = [each for each in rendered(KUBERNETES / "overlays" / "keda") if each["kind"] == "ScaledObject"]
    return {
        name
        for trigger in scaled["spec"]["triggers"]
        for name in re.findall(r"tasker_\w+", trigger["metadata"]["query"])
    }


def parse(words: Sequence[str]) -> None:
    """Read the words as the command line does, without running anything. Raises `click.UsageError`."""
    command: click.Command | None = cli
    context, rest = None, list(words)
    while isinstance(command, click.Group):
        context = command.make_context(command.name, rest, parent=context)
        _, command, rest = command.resolve_command(context, [*context._protected_args, *context.args])
    assert command is not None
    command.make_context(command.name, rest, parent=context)


def tool(name: str) -> str:
    """A program that is installed beside this Python."""
    return str(Path(sys.executable).with_name(name))
