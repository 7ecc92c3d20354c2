"""A canary of each provider of secrets is found in nothing that leaves a worker, whatever its handlers do with it."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

import tasker
from tasker.server.application import Options, application
from tasker.server.web.site import add_pages
from tests.support.canaries import CANARIES, leaks, rows_of
from tests.support.command_line import invoke, write_workflow
from tests.support.fleets.fleet import ROOT, Fleet
from tests.support.servers.plain_http import PLAIN
from tests.support.servers.secret_services import SecretServices, encrypt, secret_services, write_sops
from tests.support.servers.span_receiver import SpanReceiver, receiving
from tests.support.waiting import until

REFERENCES = {
    "env": "env:BANK_KEY",
    "file": "file:{folder}/token",
    "field": "file:{folder}/login#password",
    "sops": "sops:bank.json#bank.password",
    "vault": "vault:shop/bank#password",
    "aws": "aws:shop/bank#key",
}
CONFIGURATION = """
[plugins]
enabled = ["otel", "prometheus"]

[plugins.otel]
endpoint = "{receiver}"
logs = "otlp"
detail = "all"

[secrets.sops]
program = "{sops}"
folder = "{folder}"

[secrets.vault]
address = "{url}"
role_id = "role-4711"
secret_id = {{secret = "file:{folder}/secret-id"}}

[secrets.aws]
region = "eu-central-1"
endpoint_url = "{url}"

[resources.bank]
kind = "python"
make = "bank_clients:Bank"
keys = [{keys}]
"""
CLIENTS = """
class Bank:
    def __init__(self, keys):
        self.keys = [key.reveal() for key in keys]
        print("opened with", self.keys)

    def close(self):
        print("bank closed")
"""
MISUSES = """
import base64
import json
import logging
import os
import subprocess
from pathlib import Path
from tasker.errors import PermanentError
from tasker.domain_events import publish_domain_event
from tasker.step_handler import again_in, checkpoint_yield, step_handler, uses

HIDDEN = {}


def misuse(name):
    def decorate(function):
        HIDDEN[name] = function
        return step_handler(name)(uses(bank="bank")(function))
    return decorate


@misuse("result")
def result(bank):
    return {"rows": [{"ok": 1}, {"key": bank.keys[0]}]}


@misuse("nested")
def nested(bank):
    return {"texts": [json.dumps({"inside": key}) for key in bank.keys]}


@misuse("encoded")
async def encoded(bank):
    return {"basic": [base64.b64encode(f"app:{key}".encode()).decode() for key in bank.keys]}


@misuse("raised")
def raised(bank):
    raise PermanentError(f"refused {bank.keys}", metadata={"sent": bank.keys}, error_code=bank.keys[1])


@misuse("crashed")
async def crashed(bank):
    raise RuntimeError(*bank.keys)


@misuse("logged")
def logged(context, bank):
    context.log.error(f"uses {bank.keys[0]}", key=bank.keys[1], all={"keys": bank.keys})
    logging.getLogger("shop").warning("uses %s", bank.keys)
    print(*bank.keys)
    context.report_progress(percent=10, message=f"with {bank.keys}")
    return {"logged": True}


@misuse("position")
def position(bank):
    checkpoint_yield({"after": bank.keys[-1]}, 1)


@misuse("asleep")
def asleep(context, bank):
    again_in("1h", reason=f"waits for {bank.keys}")


@misuse("event")
def event(bank):
    publish_domain_event("used", {"keys": bank.keys})


@misuse("environment")
def environment(bank):
    done = subprocess.run(["env"], capture_output=True, text=True, check=True)
    Path(os.environ["SEEN"]).write_text(str(dict(os.environ)) + done.stdout)
    return {"seen": True}


@step_handler("fine")
@uses(bank="bank")
def fine(bank):
    return {"keys": len(bank.keys)}
"""
REFUSED = ("result", "nested", "encoded", "raised", "crashed", "position")
ALLOWED = ("logged", "event", "environment", "fine")
ENDS = {
    **dict.fromkeys(REFUSED, "error"),
    **dict.fromkeys(ALLOWED, "complete"),
    "asleep": "waiting_for_retry",
}
INTERFACE = json.loads((ROOT / "docs" / "reference" / "openapi.json").read_text("utf-8"))
LINK = re.compile(r'href="(/ui/[^"#]*)')


def template(mode: str | None) -> str:
    execution = f", execution: {{mode: {mode}}}" if mode else ""
    steps = "".join(f"  - {{name: {name}, handler: {name}, retry: {{retryable: false}}{execution}}}\n" for name in ENDS)
    return f"name: misuses\nnamespace: secrets\nversion: 1.0.0\nsteps:\n{steps}"


@pytest.fixture
def services() -> Iterator[SecretServices]:
    with secret_services() as running:
        running.values["shop/bank"] = {"password": CANARIES["vault"], "key": CANARIES.get("aws", "")}
        yield running


@pytest.fixture
def receiver() -> Iterator[SpanReceiver]:
    with receiving() as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path, services: SecretServices, receiver: SpanReceiver) -> Path:
    """A workflow whose handlers misuse the secrets of their resource in every way."""
    write_workflow(tmp_path / "misuses", template(None), MISUSES)
    (tmp_path / "bank_clients.py").write_text(CLIENTS, encoding="utf-8")
    keys = ", ".join(f'{{secret = "{REFERENCES[name].format(folder=tmp_path)}"}}' for name in CANARIES)
    values = {"folder": tmp_path, "url": services.url, "receiver": receiver.endpoint, "keys": keys}
    text = CONFIGURATION.format(sops=write_sops(tmp_path), **values)
    (tmp_path / "worker.toml").write_text(text, encoding="utf-8")
    (tmp_path / "token").write_text(CANARIES["file"], encoding="utf-8")
    (tmp_path / "secret-id").write_text("secret-id-0815", encoding="utf-8")
    (tmp_path / "login").write_text('{"password": "canary-\\"field\\"-2342"}', encoding="utf-8")
    encrypt(tmp_path / "bank.json", {"bank": {"password": CANARIES["sops"]}})
    return tmp_path


@pytest.fixture
def fleet(database_url: str, folder: Path) -> Iterator[Fleet]:
    environment = {
        "BANK_KEY": CANARIES["env"],
        "SEEN": str(folder / "seen"),
        "TASKER_CONFIG_PATH": str(folder / "worker.toml"),
        "PYTHONPATH": str(folder),
        "TASKER_LOG_FORMAT": "json",
        "TASKER_LOG_LEVEL": "debug",
        "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
        "AWS_SECRET_ACCESS_KEY": "key-of-aws-4711",
        "AWS_CONFIG_FILE": "/does/not/exist",
    }
    running = Fleet(database_url, folder, environment=environment)
    yield running
    running.stop()


def run(fleet: Fleet, url: str, workflow: Path) -> tuple[str, str]:
    """Run a task to its end in a worker; return its identifier and the worker's metrics."""
    with tasker.SyncApp(url, work=False) as app:
        task = app.submit(workflow).task_uuid
        fleet.program("worker", "-m", "tasker", "worker", str(workflow), "--port", "0", "--database-url", url)

        def states() -> dict[str, str]:
            return {name: str(step.state) for name, step in app.tasks.report(task).steps.items()}

        until(lambda: states() == ENDS, "all have ended", show=lambda: f"{states()}\n{fleet.log('worker')[-3000:]}")
        app.tasks.cancel(task)  # a stream of the events of a task ends with it
    (port,) = re.findall(r"answers on (http://\S+)", fleet.log("worker"))
    return task, PLAIN.get(f"{port}/metrics").text


@asynccontextmanager
async def server(url: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a server that has read no secret."""
    async with tasker.App(url, work=False) as app:
        served = application(app, Options(pages=add_pages))
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app=served), base_url="http://tasker.test"
        ) as client:
            yield client


async def answers(client: httpx.AsyncClient, task: str) -> dict[str, str]:
    """Every answer about the task and its steps, and every list."""
    steps = [step["step_uuid"] for step in (await client.get(f"/v1/tasks/{task}/workflow_steps")).json()]
    found = {}
    for path in [path for path, operations in INTERFACE["paths"].items() if "get" in operations]:
        for step in steps if "{step_uuid}" in path else [""]:
            address = path.replace("{uuid}", task).replace("{task_uuid}", task).replace("{step_uuid}", step)
            address = address.replace("{namespace}/{name}/{version}", "secrets/misuses/1.0.0")
            if "{" not in address:
                found[address] = (await client.get(address)).text
    return found


async def pages(client: httpx.AsyncClient, task: str) -> dict[str, str]:
    """Every page that links lead to, from the overview and from the task."""
    found: dict[str, str] = {}
    left = ["/ui", f"/ui/tasks/{task}"]
    while left and len(found) < 60:
        address = left.pop(0)
        if address not in found and "/static/" not in address and "sign-" not in address:
            found[address] = (await client.get(address)).text
            left += [link.replace("&amp;", "&") for link in LINK.findall(found[address])]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("mode", [None, pytest.param("process", marks=pytest.mark.servers)])
async def test_a_secret_is_found_nowhere(
    folder: Path, database_url: str, mode: str | None, fleet: Fleet, receiver: SpanReceiver
) -> None:
    (folder / "misuses" / "workflow.yaml").write_text(template(mode), encoding="utf-8")
    task, metrics = run(fleet, database_url, folder / "misuses")
    fleet.stop()
    log = fleet.log("worker")
    assert "bank closed" in log
    assert leaks(log) == []

    assert "tasker_steps_failures_total" in metrics
    assert leaks(metrics) == []

    stored = rows_of(database_url)
    assert leaks(stored) == []
    for words in ("result_holds_secret", "$.rows[1].key", "***REDACTED***"):
        assert words in stored

    assert len(receiver.spans) > len(REFUSED)
    assert "***REDACTED***" in str(receiver.lines)
    assert leaks("\n".join(map(str, [*receiver.spans, *receiver.lines, *receiver.headers]))) == []

    assert leaks((folder / "seen").read_text(encoding="utf-8"), without=["env"]) == []

    async with server(database_url) as client:
        answered = await answers(client, task)
        assert len(answered) > 40 + 3 * len(REFUSED)
        shown = await pages(client, task)
        assert len(shown) > 20
    texts = {**answered, **shown}
    assert {address: leaks(text) for address, text in texts.items() if leaks(text)} == {}
    assert "uses ***REDACTED***" in texts[f"/v1/tasks/{task}/logs"]
    assert "***REDACTED***" in texts[f"/ui/tasks/{task}"]


def test_commands_show_references_and_no_secret(folder: Path, fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in fleet.environment.items():
        monkeypatch.setenv(name, value)
    shown = invoke("config", "show", "--context", "worker").output + invoke("config", "validate").output
    assert "vault:shop/bank#password" in shown
    assert leaks(shown) == []
