"""Handlers beside a workflow's file belong to that workflow, whatever else its process serves."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import tasker
from tasker.errors import HandlerLoadError, HandlerNotFound
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.registry import resolve_for
from tasker.services.submission.submit import Submission
from tasker.services.workflows.files import load_plans, load_workflows
from tasker.services.workflows.handlers import load_handlers, load_neighbouring_handlers
from tasker.step_handler import StepHandler
from tasker.template import compile_text
from tasker.types import StepContext, StepHandlerResult
from tests.support.command_line import invoke, run_json, write_workflow
from tests.support.fleets.fleet import Fleet
from tests.support.fleets.oracle import Oracle
from tests.support.registered import submit_registered
from tests.unit.handlers.support import ServiceDiscoveryResolver

TEMPLATE = """
    name: {name}
    namespace_name: shared
    version: "{version}"
    steps:
      - {{name: only, handler: work}}
"""
EVERY_KIND = """
    name: {name}
    namespace_name: shared
    version: "1.0.0"
    steps:
      - {{name: apart, handler: apart, execution: {{mode: process}}}}
      - {{name: decide, type: decision, handler: decide, dependencies: [apart]}}
      - {{name: split, type: batchable, handler: split, dependencies: [decide]}}
      - {{name: portion, type: batch_worker, handler: portion, dependencies: [split], execution: {{mode: process}}}}
      - {{name: joined, type: deferred_convergence, handler: handlers.joined, dependencies: [decide, portion]}}
"""
HANDLERS = """
    from pathlib import Path

    from tasker.handlers.decorators import (
        BatchConfig, Decision, batch_analyzer, batch_worker, decision_handler, step_handler
    )

    FOLDER = Path(__file__).parent.name

    @step_handler("work")
    async def work():
        return {"from": FOLDER}

    @step_handler("apart")
    def apart():
        return {"from": FOLDER}

    @decision_handler("decide")
    def decide():
        return Decision.route(["split"], chosen_by=FOLDER)

    @batch_analyzer("split", worker_template="portion")
    def split():
        return BatchConfig(total_items=2, batch_size=1, metadata={"from": FOLDER})

    @batch_worker("portion")
    def portion(batch_context):
        return {"items_processed": 1, "from": FOLDER}

    @step_handler("joined")
    async def joined():
        return {"from": FOLDER}
"""


def folder(place: Path, name: str, text: str = TEMPLATE, handlers: str = HANDLERS, version: str = "1.0.0") -> Path:
    return write_workflow(place, text.format(name=name, version=version), handlers)


@pytest.fixture
def twins(tmp_path: Path) -> tuple[Path, Path]:
    """Two folders whose handlers have the same names."""
    return folder(tmp_path / "c1", "one"), folder(tmp_path / "c2", "two")


def origin(registry: HandlerRegistry, path: Path) -> str:
    """The folder of the code that runs the first step of the template."""
    (plan,) = load_plans(path)
    file = resolve_for(plan.steps[0], registry, plan.id).source.file
    assert file is not None
    return Path(file).parent.name


def loaded(*paths: Path, sources: tuple[Path, ...] = ()) -> HandlerRegistry:
    registry = load_handlers(sources)
    for path in paths:
        load_neighbouring_handlers(registry, load_workflows(path))
    return registry


def test_every_kind_of_step_runs_the_code_beside_its_template(database_url: str, tmp_path: Path) -> None:
    paths = [folder(tmp_path / name, name, EVERY_KIND) for name in ("c1", "c2")]
    with tasker.SyncApp(database_url) as app:
        tasks = {path.name: app.submit(path).task_uuid for path in paths}
        reports = {name: app.wait(task, timeout=60) for name, task in tasks.items()}
    for name, report in reports.items():
        assert report.succeeded
        assert len(report.steps) == 6
        text = {step: str(found.result) for step, found in report.steps.items()}
        assert not [step for step, result in text.items() if f"'{name}'" not in result]
        other = {"c1": "c2", "c2": "c1"}[name]
        assert not [step for step, result in text.items() if f"'{other}'" in result]


@pytest.mark.slow
@pytest.mark.parametrize("command", ["worker", "dev"])
def test_a_process_that_serves_two_folders_runs_each_with_its_own_code(
    database_url: str, fleet: Fleet, oracle: Oracle, twins: tuple[Path, Path], command: str
) -> None:
    if command == "dev":
        fleet.dev("both", *map(str, twins))
    else:
        fleet.worker("both", *map(str, twins))

    async def run() -> list[Any]:
        async with tasker.App(database_url, work=False) as app:
            tasks = [await submit_registered(app, load_plans(path)[0], Submission()) for path in twins]
            return [await app.wait(task.task_uuid, timeout=60) for task in tasks]

    assert [report.results["only"] for report in asyncio.run(run())] == [{"from": "c1"}, {"from": "c2"}]


def test_neighbours_come_before_what_is_for_all(twins: tuple[Path, Path], tmp_path: Path) -> None:
    everywhere = folder(tmp_path / "everywhere", "unused") / "handlers.py"
    bare = folder(tmp_path / "bare", "bare")
    (bare / "handlers.py").unlink()
    registry = loaded(twins[0], bare, sources=(everywhere,))
    assert origin(registry, twins[0]) == "c1"
    assert origin(registry, bare) == "everywhere"


def test_neighbours_serve_no_other_template(twins: tuple[Path, Path], tmp_path: Path) -> None:
    bare = folder(tmp_path / "bare", "bare")
    (bare / "handlers.py").unlink()
    with pytest.raises(HandlerNotFound, match="'work'"):
        origin(loaded(*twins, bare), bare)


def test_a_resolver_hint_finds_the_neighbour_first(twins: tuple[Path, Path]) -> None:
    file = twins[0] / "workflow.yaml"
    file.write_text(file.read_text().replace("handler: work", "handler: {callable: work, resolver: explicit_mapping}"))
    assert origin(loaded(*twins, sources=(twins[1],)), twins[0]) == "c1"


def test_a_template_that_has_moved_on_still_finds_its_folder(twins: tuple[Path, Path]) -> None:
    registry = loaded(*twins)
    for text in ("description: newer", 'version: "2.0.0"'):
        file = twins[0] / "workflow.yaml"
        file.write_text(
            file.read_text()
            .replace('version: "1.0.0"', f'version: "1.0.0"\n{text}')
            .replace('version: "1.0.0"\nversion', "version")
        )
        assert origin(registry, twins[0]) == "c1"


def test_one_template_in_two_folders_with_handlers_is_refused(tmp_path: Path) -> None:
    first, second = (folder(tmp_path / name, "same") for name in ("a", "b"))
    with pytest.raises(HandlerLoadError, match=r"the template shared/same:1\.0\.0 exists in .*/a and .*/b") as caught:
        loaded(first, second)
    assert "another name or version" in str(caught.value.hint)
    loaded(first, first)


def test_two_versions_in_two_folders_run_their_own_code_and_an_unknown_one_none(tmp_path: Path) -> None:
    first, second = (
        folder(tmp_path / name, "same", version=version) for name, version in (("a", "1.0.0"), ("b", "2.0.0"))
    )
    registry = loaded(first, second, sources=(first,))
    assert [origin(registry, path) for path in (first, second)] == ["a", "b"]
    third = folder(tmp_path / "c", "same", version="0.9.0")
    with pytest.raises(HandlerNotFound, match=r"shared/same:0\.9\.0 may belong to .*/a and .*/b"):
        origin(registry, third)


def test_templates_below_a_folder_have_the_handlers_beside_them(tmp_path: Path) -> None:
    for name in ("one", "two"):
        folder(tmp_path / name, name)
    registry = loaded(tmp_path)
    assert [origin(registry, tmp_path / name) for name in ("one", "two")] == ["one", "two"]


def test_a_template_below_without_handlers_has_those_of_the_folder_that_was_named(tmp_path: Path) -> None:
    folder(tmp_path / "below", "below").joinpath("handlers.py").rename(tmp_path / "handlers.py")
    assert origin(loaded(tmp_path), tmp_path / "below") == tmp_path.name


def test_the_file_of_two_templates_is_run_once(tmp_path: Path) -> None:
    path = folder(
        tmp_path / "both",
        "one",
        handlers=HANDLERS + '    (runs := Path(__file__ + ".runs")).write_text(runs.read_text() + "x")\n',
    )
    (path / "handlers.py.runs").touch()
    (path / "workflow.yaml").rename(path / "one.yaml")
    (path / "two.yaml").write_text((path / "one.yaml").read_text().replace("one", "two"))
    loaded(path / "one.yaml", path / "two.yaml")
    assert (path / "handlers.py.runs").read_text() == "x"


def test_one_run_uses_the_neighbour_and_what_checks_it_does_as_well(
    database_url: str, twins: tuple[Path, Path], tmp_path: Path
) -> None:
    report = run_json(twins[0], "--handlers", twins[1], database=database_url)
    assert [step["result"] for step in report["steps"]] == [{"from": "c1"}]
    assert invoke("template", "validate", *twins, "--handlers", twins[1]).exit_code == 0
    (twins[0] / "handlers.py").unlink()
    assert invoke("template", "validate", twins[0], "--handlers", tmp_path / "c2" / "handlers.py").exit_code == 0
    refused = invoke("run", twins[0], database=database_url)
    assert refused.exit_code == 2
    assert "no handler 'work'" in refused.output


def test_a_published_resolver_finds_the_handler_of_a_template(database_url: str) -> None:
    class Pay(StepHandler):
        def call(self, context: StepContext) -> StepHandlerResult:
            return self.success({"paid": context.get_config("region")})

    (plan,) = compile_text(
        "name: discovered\nnamespace_name: shared\nversion: 1.0.0\nsteps:\n"
        "  - name: pay\n"
        "    handler: {callable: 'service://pay', resolver: service_discovery, initialization: {region: north}}\n"
    ).plans
    registry = HandlerRegistry()
    registry.resolver_chain.register(ServiceDiscoveryResolver({"pay": Pay}))
    with tasker.SyncApp(database_url, registry=registry) as app:
        assert app.run(plan, timeout=60).results["pay"] == {"paid": "north"}
