"""What a worker has in memory: the modules that it uses, and no others."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

import tasker
from tests.support.command_line import write_workflow
from tests.support.fleets.fleet import Fleet

pytestmark = pytest.mark.slow

TEMPLATE = """
name: loaded
namespace_name: loaded
version: 1.0.0
steps:
  - {name: before, handler: loaded.before}
  - {name: all, handler: loaded.all, dependencies: [before]}
"""
HANDLERS = """
import gc, sys, types
from tasker.step_handler import depends_on, step_handler
from tasker.types import StepHandlerResult

@step_handler("loaded.before")
async def before(): return {}

@step_handler("loaded.all")
@depends_on(before="before")
async def loaded(before):
    watched = [each.__name__ for each in gc.get_objects() if isinstance(each, types.ModuleType)]
    validator = StepHandlerResult.__pydantic_complete__
    return {"modules": sorted(sys.modules), "watched": watched, "validator": validator}
"""
UNUSED = {
    "aio_pika",
    "alembic",
    "difflib",
    "fastapi",
    "getpass",
    "httpx",
    "jsonschema",
    "multiprocessing",
    "nats",
    "pkgutil",
    "pluggy",
    "pydantic.type_adapter",
    "redis",
    "rich",
    "sqlalchemy",
    "stamina",
    "starlette",
    "structlog",
    "tasker.app.orchestrator_assembly",
    "tasker.app.app",
    "tasker.app.http_serving",
    "tasker.handlers.batchable",
    "tasker.cli.target",
    "tasker.cli.run",
    "tasker.cli.commands.worker_list",
    "tasker.client.responses",
    "tasker.execution.modes.subprocess_pool",
    "tasker.plugins.hooks",
    "tasker.services.submission.submit",
    "tasker.settings.catalogue",
    "tasker.settings.model",
    "tasker.handlers.function_kinds",
    "tasker.handlers.http.response",
    "tasker.handlers.batch_worker",
    "tasker.handlers.decisions",
    "uvicorn",
}


@pytest.mark.parametrize("name", sorted(name for name in UNUSED if name.startswith("tasker.")))
def test_what_is_not_to_be_loaded_is_there(name: str) -> None:
    """One that was renamed would never be found loaded."""
    assert find_spec(name) is not None


async def test_a_worker_that_has_run_a_step_has_loaded_only_what_it_uses_and_looks_for_no_garbage_in_it(
    database_url: str, tmp_path: Path
) -> None:
    workflow = write_workflow(tmp_path / "loaded", TEMPLATE, HANDLERS)
    fleet = Fleet(database_url, tmp_path)
    try:
        fleet.worker("worker", str(workflow))
        async with tasker.App(database_url, work=False) as app:
            report = await app.run("loaded/loaded", timeout=60)
    finally:
        fleet.stop()

    modules, watched = (set(report.results["all"][name]) for name in ("modules", "watched"))
    assert "tasker.process.serving" in modules
    assert not [name for name in watched if name.startswith(("pydantic", "psycopg", "tasker.process"))]
    assert UNUSED & modules == set()
    assert report.results["all"]["validator"] is False, "a success of right types needs none"
