"""A worker that is named no workflow serves what its search paths find, of the namespaces that it is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from tasker.app.configured import UNCONFIGURED, Configured
from tasker.db.connection import Connection
from tasker.engine.plans import PlanStore
from tasker.errors import HandlerNotFound, InvalidQueueName, UsageError
from tasker.services.workflows.handlers import load_handlers
from tasker.services.workflows.served import register_served

TEMPLATE = """
name: found
namespace_name: {namespace}
version: "1.0.0"
steps:
  - {{name: only, handler: found.{namespace}}}
"""
HANDLERS = """
from tasker.handlers.decorators import step_handler

@step_handler("found.{namespace}")
async def work(context):
    return {{}}
"""


def template(folder: Path, namespace: str, *, handlers: bool = True) -> Path:
    folder.mkdir(parents=True)
    (folder / "flow.yml").write_text(TEMPLATE.format(namespace=namespace))
    if handlers:
        (folder / "handlers.py").write_text(HANDLERS.format(namespace=namespace))
    return folder


def searching(folder: Path, *namespaces: str) -> Configured:
    return Configured(search_paths=(f"{folder}/**/*.{{yml,yaml}}",), namespaces=namespaces)


async def served(url: str, configuration: Configured, *namespaces: str, workflows: tuple[Path, ...] = ()) -> list[str]:
    """What is served, which must be what is registered or asked for."""
    connection = Connection(url)
    try:
        plans = PlanStore(connection)
        options = {"workflows": workflows, "namespaces": namespaces}
        found = await register_served(configuration, load_handlers([]), plans, **options)  # type: ignore[arg-type]
        return found.namespaces
    finally:
        await connection.close()


async def registered(url: str) -> set[str]:
    connection = Connection(url)
    rows = await connection.execute(
        "select distinct n.name from tasker.named_tasks t join tasker.task_namespaces n using (namespace_id)"
    )
    await connection.close()
    return {row[0] for row in rows}


async def test_everything_that_is_found_is_registered_and_served(database_url: str, tmp_path: Path) -> None:
    template(tmp_path / "a", "alpha")
    template(tmp_path / "deep" / "b", "beta")
    assert await served(database_url, searching(tmp_path)) == ["alpha", "beta"]
    assert await registered(database_url) == {"alpha", "beta"}


@pytest.mark.parametrize("by_option", [True, False])
async def test_with_namespaces_only_theirs_is(database_url: str, tmp_path: Path, by_option: bool) -> None:
    template(tmp_path / "a", "alpha")
    template(tmp_path / "b", "beta", handlers=False)
    asked = ("alpha", "gamma")
    configuration = searching(tmp_path, *(() if by_option else asked))
    assert await served(database_url, configuration, *(asked if by_option else ())) == ["alpha", "gamma"]
    assert await registered(database_url) == {"alpha"}


async def test_workflows_that_are_named_are_all_there_is(database_url: str, tmp_path: Path) -> None:
    template(tmp_path / "a", "alpha")
    named = template(tmp_path / "b", "beta")
    assert await served(database_url, searching(tmp_path, "gamma"), workflows=(named,)) == ["beta"]


async def test_a_template_without_its_handlers_stops_the_start(database_url: str, tmp_path: Path) -> None:
    template(tmp_path / "a", "alpha", handlers=False)
    with pytest.raises(HandlerNotFound, match=r"found\.alpha"):
        await served(database_url, searching(tmp_path))


async def test_nothing_to_serve_is_an_error_that_names_the_paths(database_url: str) -> None:
    with pytest.raises(UsageError, match=r"config/tasks/\*\*/\*\.\{yml,yaml\}"):
        await served(database_url, UNCONFIGURED)


@pytest.mark.parametrize("by_option", [True, False])
async def test_a_namespace_that_can_have_no_queue_stops_the_start(database_url: str, by_option: bool) -> None:
    asked = ("orchestration_x",)
    configuration = Configured(search_paths=(), namespaces=() if by_option else asked)
    with pytest.raises(InvalidQueueName, match="'orchestration_x' begins with 'orchestration', which is reserved"):
        await served(database_url, configuration, *(asked if by_option else ()))
