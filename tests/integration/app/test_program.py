"""A program finds its database and settings where the commands do, and notices an edited template."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import tasker
from tasker.app.configured import UNCONFIGURED, Configured, configured_program
from tasker.errors import ConfigurationError, HandlerNotFound, TemplateError, UsageError
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.template.plan import Plan
from tests.support.command_line import write_workflow

ELSEWHERE = "postgresql://nobody@nowhere.invalid/none"
WORKFLOW = """
    name: edited
    namespace_name: edited
    version: "1.0.0"
    steps:
      - {name: only, handler: first}
"""
HANDLER = """
    from tasker.handlers.decorators import step_handler

    @step_handler("first")
    async def first():
        return {"ran": "first"}
"""


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("TASKER_") or name == "DATABASE_URL"]:
        monkeypatch.delenv(name)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "merged.toml"
    file.write_text(f'[common.database]\nurl = "{ELSEWHERE}"\n[common.queues]\nbackend = "memory"\n')
    return file


def test_a_program_without_arguments_takes_the_database_and_the_settings_of_its_environment(
    database_url: str, registry: HandlerRegistry, plan: Plan, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASKER_CONFIG_PATH", str(file))
    monkeypatch.setenv("DATABASE_URL", database_url)
    with tasker.SyncApp(registry=registry) as app:
        assert app.database_url == database_url
        assert app.original.messaging.provider_name() == "memory"
        assert app.run(plan, {"name": "Ada"}, timeout=60).succeeded


def test_a_folder_and_a_file_of_handlers_may_be_given_as_text(embedded_folder: Path, tmp_path: Path) -> None:
    folder = write_workflow(tmp_path / "edited", WORKFLOW, HANDLER)
    (folder / "handlers.py").rename(tmp_path / "given.py")
    with tasker.SyncApp(data_dir=str(embedded_folder), handlers=str(tmp_path / "given.py")) as app:
        assert app.run(folder, {}, timeout=60).results == {"only": {"ran": "first"}}


def test_what_is_given_counts_above_the_environment_and_a_variable_above_the_file(file: Path, tmp_path: Path) -> None:
    environ = {"DATABASE_URL": "postgresql://variable/x", "TASKER_CONFIG_PATH": str(file)}

    def found(
        url: str | None = None, data_dir: Path | None = None, given: Configured | None = None, **variables: str
    ) -> str | None:
        return configured_program(url, data_dir, given, environ=variables or environ).database_url

    assert found("postgresql://argument/x") == "postgresql://argument/x"
    assert found() == found(DATABASE_URL="postgresql://variable/x") == "postgresql://variable/x"
    assert found(TASKER_CONFIG_PATH=str(file)) == ELSEWHERE
    assert found(data_dir=tmp_path) is None
    assert found(given=UNCONFIGURED) is None
    assert found(given=Configured(database_url=ELSEWHERE)) == ELSEWHERE
    assert found(given=Configured(database_url=ELSEWHERE), data_dir=tmp_path) is None
    with pytest.raises(UsageError, match="names another one"):
        found(ELSEWHERE, tmp_path)


def test_a_configuration_that_cannot_be_used_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASKER_CONFIG_PATH", str(tmp_path / "gone.toml"))
    with pytest.raises(ConfigurationError, match=r"gone\.toml"):
        tasker.App()


def test_an_edited_template_is_taken_at_the_next_submission_and_a_task_keeps_its_own(
    database_url: str, tmp_path: Path
) -> None:
    folder = write_workflow(tmp_path / "edited", WORKFLOW, HANDLER)
    with tasker.SyncApp(database_url) as app:
        before = app.run(folder, timeout=60)
        write_workflow(folder, WORKFLOW.replace("first}", "second}"), HANDLER.replace("first", "second"))
        after = app.run(folder, timeout=60)
        assert [report.results["only"] for report in (before, after)] == [{"ran": "first"}, {"ran": "second"}]
        plans = [app.plans.get(app.tasks.template_id(report.task_uuid)) for report in (before, after)]
    assert [plan.steps[0].handler.callable for plan in plans] == ["first", "second"]


def test_an_edit_that_cannot_be_used_is_refused_until_it_is_mended(database_url: str, tmp_path: Path) -> None:
    folder = write_workflow(tmp_path / "edited", WORKFLOW, HANDLER)
    with tasker.SyncApp(database_url) as app:
        app.plan(folder)
        for broken, error in (
            (WORKFLOW + "      - {}\n", TemplateError),
            (WORKFLOW.replace("first", "gone"), HandlerNotFound),
        ):
            write_workflow(folder, broken, HANDLER)
            for _ in range(2):
                with pytest.raises(error):
                    app.plan(folder)
        write_workflow(folder, WORKFLOW, HANDLER)
        assert app.run(folder, timeout=60).succeeded


def test_a_template_that_comes_into_a_folder_is_found(database_url: str, tmp_path: Path) -> None:
    folder = write_workflow(tmp_path / "edited", WORKFLOW, HANDLER)
    (folder / "workflow.yaml").rename(folder / "one.yaml")
    with tasker.SyncApp(database_url, work=False) as app:
        assert app.plan(folder).name == "edited"
        (folder / "two.yaml").write_text((folder / "one.yaml").read_text().replace("name: edited", "name: added", 1))
        assert app.plan(folder, template="added").name == "added"
