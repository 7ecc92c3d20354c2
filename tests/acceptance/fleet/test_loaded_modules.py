"""What a worker has in memory: the modules that it uses, and no others."""

from __future__ import annotations

from pathlib import Path

import pytest

import tasker
from tests.support.command_line import write_workflow
from tests.support.fleets.fleet import Fleet

pytestmark = pytest.mark.slow

TEMPLATE = "{name: loaded, namespace_name: loaded, version: 1.0.0, steps: [{name: all, handler: loaded.all}]}"
HANDLERS = """
import gc, sys, types
from tasker.step_handler import step_handler

@step_handler("loaded.all")
async def loaded():
    watched = [each.__name__ for each in gc.get_objects() if isinstance(each, types.ModuleType)]
    return {"modules": sorted(sys.modules), "watched": watched}
"""
UNUSED = {
    "aio_pika",
    "alembic",
    "fastapi",
    "httpx",
    "jsonschema",
    "multiprocessing",
    "nats",
    "pluggy",
    "redis",
    "rich",
    "sqlalchemy",
    "stamina",
    "starlette",
    "structlog",
    "tasker.app.embedded.app",
    "tasker.app.process_port",
    "tasker.cli.run",
    "tasker.execution.attempt.modes.in_process",
    "tasker.hookspecs",
    "tasker.settings.catalogue",
    "tasker.settings.model",
    "tasker.types.client",
    "tasker.types.events",
    "tasker.types.worker",
    "uvicorn",
}


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
    assert not UNUSED & modules
