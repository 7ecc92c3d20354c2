"""What a worker serves is the same everywhere: in its runs, in lists, over HTTP, and in the check of a template."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import Any

import httpx
import pytest

import tasker
from tasker.server.application import application
from tests.support.command_line import invoke
from tests.support.fleets.fleet import Fleet
from tests.support.fleets.oracle import Oracle
from tests.support.fleets.submitting import submit_folder
from tests.support.strangers import write_distribution
from tests.support.waiting import until

pytestmark = pytest.mark.slow

TEMPLATE = """
name: greeting
namespace: shop
version: 1.0.0
steps:
  - {name: greet, handler: shop.greet}
  - {name: part, handler: shop_handlers.Part, dependencies: [greet]}
"""
HANDLERS = """
from tasker.step_handler import StepHandler, step_handler

@step_handler("shop.greet")
def greet():
    return {"text": "Hello!"}

@step_handler("shop.wave")
def wave():
    return {}

class Part(StepHandler):
    handler_name = "shop.part"

    def call(self, context):
        return self.success({"text": "Bye!"})
"""
BROKEN = "raise RuntimeError('not on this machine')"


def test_installed_handlers_are_served_visibly(database_url: str, fleet: Fleet, oracle: Oracle, tmp_path: Path) -> None:
    folder = tmp_path / "greeting"
    folder.mkdir()
    (folder / "workflow.yaml").write_text(TEMPLATE)
    roots = [
        write_distribution(tmp_path, "shop_dist", "tasker.handlers", "shop", "shop_handlers", HANDLERS),
        write_distribution(tmp_path, "broken_dist", "tasker.handlers", "broken", "broken_handlers", BROKEN),
    ]
    path = os.pathsep.join([*map(str, roots), os.environ.get("PYTHONPATH", "")])
    task = submit_folder(database_url, folder)

    fleet.worker("one", "--namespace", "shop", environment={"PYTHONPATH": path})

    (row,) = json.loads(invoke("worker", "list", "--format", "json", database=database_url).output)
    assert [name for name in row["callables"] if name.startswith("shop.")] == ["shop.greet", "shop.part", "shop.wave"]
    assert "handlers_unavailable entry_point=broken" in fleet.log("one")
    oracle.wait_for_the_end([task])
    assert listed_over_http(database_url) >= {"shop.greet", "shop.part", "shop.wave"}
    until(lambda: problems_over_http(database_url) == [], "what a template names by another name is served, too")


ROUTED = """
name: {name}
namespace: shop
version: 1.0.0
steps:
  - {{name: route, handler: shop.{name}}}
  - {{name: pay, handler: shop.take, dependencies: [route]}}
  - {{name: refuse, handler: shop.take, dependencies: [route]}}
"""
ROUTING = """
from tasker.step_handler import Decision, DecisionMixin, StepHandler, decision_handler, step_handler

@decision_handler("shop.decorated")
def decorated():
    return Decision.route(["refuse"])

class Mixed(DecisionMixin, StepHandler):
    handler_name = "shop.mixed"

    def call(self, context):
        return self.decision_success(["refuse"])

@step_handler("shop.take")
def take():
    return {}
"""


@pytest.mark.parametrize("name", ["decorated", "mixed"])
def test_a_worker_runs_no_branch_of_a_decision_that_its_step_cannot_make(
    database_url: str, fleet: Fleet, oracle: Oracle, tmp_path: Path, name: str
) -> None:
    (tmp_path / "routed").mkdir()
    (tmp_path / "routed" / "workflow.yaml").write_text(ROUTED.format(name=name))
    (tmp_path / "routing.py").write_text(ROUTING)
    task = submit_folder(database_url, tmp_path / "routed")

    fleet.worker("one", "--namespace", "shop", "--handlers", str(tmp_path / "routing.py"))
    oracle.wait_for_the_end([task])

    shown = json.loads(invoke("task", "show", task, "--format", "json", database=database_url).output)
    states = {step["name"]: (step["state"], step["attempts"]) for step in shown["steps"]}
    assert states == {"route": ("error", 1), "pay": ("pending", 0), "refuse": ("pending", 0)}
    (error,) = [step["error"] for step in shown["steps"] if step["name"] == "route"]
    assert error["type"] == "handler_mismatch", error
    assert "write `type: decision` for `route` in the template" in error["message"]


CLASSIFIED = """
name: classified
namespace: shop
version: 1.0.0
steps:
  - {name: divide, handler: shop.divide}
  - {name: divide_apart, handler: shop.divide, execution: {mode: process}}
"""
DIVIDES = """
from tasker.step_handler import step_handler

@step_handler("shop.divide")
def divide():
    return {"quotient": 1 / 0}
"""
CLASSIFIER = """
from tasker.errors import ErrorClassifier

class ShopErrors(ErrorClassifier):
    PERMANENT_ERROR_CLASSES = (*ErrorClassifier.PERMANENT_ERROR_CLASSES, ZeroDivisionError)
"""


def test_installed_templates_and_error_rules_are_used_and_usr1_logs_the_status(
    database_url: str, fleet: Fleet, oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = "tasker.error_classifiers"
    roots = [
        write_distribution(tmp_path, "flows_dist", "tasker.templates", "shop", "shop_flows.classified", ""),
        write_distribution(tmp_path, "rules_dist", group, "shop", "shop_rules:ShopErrors", CLASSIFIER),
    ]
    folder = roots[0] / "shop_flows" / "classified"
    folder.mkdir(parents=True)
    (folder / "workflow.yaml").write_text(CLASSIFIED)
    (folder / "handlers.py").write_text(DIVIDES)
    path = os.pathsep.join([*map(str, roots), os.environ.get("PYTHONPATH", "")])

    fleet.worker("one", environment={"PYTHONPATH": path})
    task = submit_folder(database_url, folder)
    oracle.wait_for_the_end([task])

    shown = json.loads(invoke("task", "show", task, "--format", "json", database=database_url).output)
    assert {step["name"]: (step["state"], step["attempts"]) for step in shown["steps"]} == {
        "divide": ("error", 1),
        "divide_apart": ("error", 1),
    }
    fleet.orchestrator("two")
    for name, kind in (("one", "worker"), ("two", "orchestrator")):
        fleet.signal(name, signal.SIGUSR1)
        until(lambda name=name: "process_status" in fleet.log(name), f"{name} logs its status")  # type: ignore[misc]
        (line,) = [line for line in fleet.log(name).splitlines() if "process_status" in line]
        assert f"process={kind} worker=" in line
        assert "health=healthy" in line
    assert not fleet.ended("one")
    for root in roots:
        monkeypatch.syspath_prepend(root)
    registered = invoke("template", "register", database=database_url)
    assert registered.output == "registered shop/classified:1.0.0\n"


def test_dev_takes_the_configuration_that_the_environment_names(
    database_url: str, fleet: Fleet, tmp_path: Path
) -> None:
    (tmp_path / "tasker.toml").write_text("[worker.mpsc_channels.handler_dispatch]\nmax_concurrent_handlers = 7\n")
    workflow = tmp_path / "routed"
    workflow.mkdir()
    (workflow / "workflow.yaml").write_text(ROUTED.format(name="take"))
    (workflow / "handlers.py").write_text(ROUTING)
    fleet.environment["TASKER_CONFIG_PATH"] = str(tmp_path / "tasker.toml")

    fleet.dev("one", str(workflow))

    (row,) = json.loads(invoke("worker", "list", "--format", "json", database=database_url).output)
    assert row["concurrency"] == 7


def listed_over_http(url: str) -> set[str]:
    return {each["name"] for each in over_http(url, "GET", "/v1/handlers/shop")["handlers"]}


def problems_over_http(url: str) -> list[str]:
    found: list[str] = over_http(url, "POST", "/v1/templates/shop/greeting/1.0.0/validate")["errors"]
    return found


def over_http(url: str, method: str, path: str) -> dict[str, Any]:
    """What a server on this database answers."""

    async def answered() -> dict[str, Any]:
        async with tasker.App(url, work=False) as app:
            transport = httpx.ASGITransport(app=application(app))
            async with httpx.AsyncClient(transport=transport, base_url="http://tasker") as client:
                answer: dict[str, Any] = (await client.request(method, path)).json()
                return answer

    return asyncio.run(answered())
