"""What `tasker run` checks before it starts a database."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from click.testing import Result

from tasker.cli.main import cli
from tasker.cli.options import DatabaseOption
from tasker.cli.run.checks import RunRequest, existing_path, prepare_order, resolve_sources
from tasker.errors import HandlerNotFound, InputInvalid, UsageError
from tasker.services.workflows.files import load_workflows
from tasker.services.workflows.targets import choose_workflow
from tests.support.command_line import invoke, write_workflow

TEMPLATE = """
    name: greeting
    namespace: tutorial
    version: 1.0.0
    input_schema:
      type: object
      additionalProperties: false
      properties: {name: {type: string}}
    steps:
      - {name: greet, handler: greeting.greet}
"""
HANDLERS = """
    from tasker.handlers.decorators import step_handler

    @step_handler("greeting.greet")
    def greet():
        return {}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_workflow(tmp_path / "greeting", TEMPLATE, HANDLERS)


def refused(*arguments: str | Path) -> Result:
    """The result of a `tasker run` that is a mistake; a database is not even thought of."""
    result = invoke("run", *arguments, database="postgresql://nobody@nowhere.invalid/none")
    assert result.exit_code == 2, result.output
    return result


def test_the_plan_the_handlers_and_the_input_are_found(folder: Path) -> None:
    (folder / "input.json").write_text('{"name": "world"}', encoding="utf-8")

    prepared = prepare_order(RunRequest(str(folder)))

    assert prepared.plan
    assert prepared.plan.name == "greeting"
    assert prepared.registry.names_for(prepared.plan.id) == ["greeting.greet"]
    assert prepared.input.values == {"name": "world"}


def test_the_input_file_belongs_to_the_workflow_file_of_its_folder_alone(folder: Path) -> None:
    (folder / "input.json").write_text('{"name": "world"}', encoding="utf-8")
    (folder / "other.yaml").write_text((folder / "workflow.yaml").read_text(encoding="utf-8"), encoding="utf-8")

    assert prepare_order(RunRequest(str(folder / "workflow.yaml"))).input.values == {"name": "world"}
    assert prepare_order(RunRequest(str(folder / "other.yaml"))).input.values == {}


def test_a_task_remembers_where_its_handlers_are(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)

    tags = prepare_order(RunRequest("greeting", handlers=["greeting/handlers.py", "json"])).tags

    assert resolve_sources(tags) == (folder, [str(folder / "handlers.py"), "json"])


def test_a_missing_handler_is_named_with_its_step(folder: Path) -> None:
    (folder / "handlers.py").write_text("", encoding="utf-8")

    with pytest.raises(HandlerNotFound, match=r"step 'greet': no handler 'greeting.greet'"):
        prepare_order(RunRequest(str(folder)))


def test_a_wrong_input_is_refused_by_its_place_and_source(folder: Path) -> None:
    with pytest.raises(InputInvalid) as caught:
        prepare_order(RunRequest(str(folder), settings=["nmae=world"]))

    assert "tutorial/greeting 1.0.0 (input: {} with nmae set)" in caught.value.message
    assert "$.nmae: is not a known key; did you mean `name`?" in caught.value.message
    assert caught.value.hint is None


def test_a_number_that_was_meant_as_text_gets_a_hint(folder: Path) -> None:
    with pytest.raises(InputInvalid) as caught:
        prepare_order(RunRequest(str(folder), settings=["name=12"]))

    assert caught.value.hint
    assert caught.value.hint.endswith("""--set 'name="12"'""")


def test_a_file_with_several_templates_needs_a_name(folder: Path) -> None:
    text = (folder / "workflow.yaml").read_text(encoding="utf-8")
    (folder / "workflow.yaml").rename(folder / "one.yaml")
    (folder / "two.yaml").write_text(text.replace("name: greeting", "name: farewell"), encoding="utf-8")

    with pytest.raises(UsageError, match="holds 2 templates; it has: greeting, farewell"):
        prepare_order(RunRequest(str(folder)))
    with pytest.raises(UsageError, match="has no template 'hello'"):
        prepare_order(RunRequest(str(folder), template="hello"))

    chosen = prepare_order(RunRequest(str(folder), template="farewell")).plan
    assert chosen
    assert chosen.name == "farewell"


def test_two_versions_of_a_template_in_a_folder_are_told_apart_by_their_files(folder: Path) -> None:
    text = (folder / "workflow.yaml").read_text(encoding="utf-8")
    (folder / "workflow.yaml").rename(folder / "one.yaml")
    (folder / "two.yaml").write_text(text.replace("version: 1.0.0", "version: 1.1.0"), encoding="utf-8")

    for template in (None, "greeting"):
        with pytest.raises(UsageError, match="holds 2 templates called 'greeting'") as caught:
            prepare_order(RunRequest(str(folder), template=template))
        assert caught.value.hint == "name the file of one"
    with pytest.raises(UsageError, match="holds 2 templates called 'greeting'"):
        choose_workflow(load_workflows(folder), "greeting", str(folder))


@pytest.mark.parametrize("target", ["shop/checkout", "shop/checkout:1.2.0"])
def test_a_name_with_a_namespace_is_looked_up_in_the_database(target: str) -> None:
    assert existing_path(target) is None


@pytest.mark.parametrize("target", ["missing", "a/b/c", "a/b.yaml", "./a/b", "/a", "a/"])
def test_a_path_that_does_not_exist_is_said(target: str) -> None:
    with pytest.raises(UsageError, match=f"{target} does not exist"):
        existing_path(target)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "nothing to run"),
        (("--resume", "01a1fad1", "--set", "a=1"), "--resume uses the input of the task"),
        (("missing", "--strict-identity", "--idempotency-key", "k"), "exclude each other"),
        (("missing",), "missing does not exist"),
        (("missing", "--timeout", "0"), "--timeout"),
        (("missing", "--timeout", "nan"), "is not a number"),
        (("missing", "--concurrency", "0"), "--concurrency"),
        (("missing", "--data-dir", "x"), "--database-url another one"),
        (("missing", "--priority", "3000000000"), "or a whole number from -2147483648 to 2147483647, got '3000000000'"),
        (("--resume", "01a1fad1", "--env", "prod"), "omit --input, --set and --env"),
    ],
)
def test_a_mistake_in_the_command_has_exit_code_2(arguments: tuple[str, ...], said: str) -> None:
    assert said in refused(*arguments).stderr


@pytest.mark.parametrize("url", ["", " "])
def test_an_empty_database_url_is_refused(folder: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    result = invoke("run", folder, "--database-url", url)
    assert (result.exit_code, "--database-url is empty" in result.stderr) == (2, True)
    assert not Path(".tasker").exists()


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (("run", "{}", "--env", "prdo"), "did you mean `prod`?"),
        (("run", "{}", "--env", "xyz"), "they have: prod"),
        (("template", "validate", "{}", "--env", "prdo"), "did you mean `prod`?"),
        (("template", "show", "{}", "--env", "prdo"), "has the environment 'prdo'"),
    ],
)
def test_an_environment_that_no_template_has_is_refused(folder: Path, command: tuple[str, ...], says: str) -> None:
    template = folder / "workflow.yaml"
    overrides = "environments: {prod: {steps: [{name: greet, timeout_seconds: 5}]}}\n"
    template.write_text(template.read_text() + overrides)
    arguments = [part.format(folder) for part in command]
    result = invoke(
        *arguments, *(["--database-url", "postgresql://nobody@nowhere.invalid/none"] * (command[0] == "run"))
    )
    assert (result.exit_code, says in result.stderr) == (2, True), result.output
    assert invoke("template", "validate", folder, "--env", "prod").exit_code == 0


def test_mistakes_are_found_before_the_database_is_asked(folder: Path) -> None:
    assert "did you mean `name`" in refused(folder, "--set", "nmae=1").stderr

    (folder / "handlers.py").write_text("", encoding="utf-8")
    assert "1 of 1 steps have no handler" in refused(folder).stderr

    (folder / "workflow.yaml").write_text("nmae: x", encoding="utf-8")
    assert "workflow.yaml:1:1" in refused(folder).stderr


def test_in_json_mode_a_mistake_is_an_object_on_standard_output(folder: Path) -> None:
    result = refused(folder, "--set", "nmae=1", "--format", "json")

    error = json.loads(result.stdout)["error"]
    assert error["type"] == "input_invalid"
    assert error["problems"] == [{"path": "$.nmae", "message": "is not a known key; did you mean `name`?"}]
    assert result.stderr == ""


@pytest.mark.parametrize("form", [["--json"], ["--format", "json"], ["--format=json"]])
def test_in_json_mode_even_an_option_that_cannot_be_read_is_an_object(form: list[str]) -> None:
    result = refused("x", *form, "--timeout", "soon")

    assert json.loads(result.stdout)["error"]["type"] == "usage_error"
    assert result.stderr == ""


def test_the_command_to_go_on_names_the_same_database_without_its_password() -> None:
    given = DatabaseOption("postgresql://me:secret@host/db", "memory", url_given=True)

    assert given.arguments() == " --database-url 'postgresql://me:***@host/db' --backend memory"
    assert DatabaseOption("postgresql://me:secret@host/db").arguments() == ""
    assert DatabaseOption(data_dir=Path("a b")).arguments() == " --data-dir 'a b'"


@pytest.mark.parametrize(
    ("words", "incomplete", "expected"),
    [
        (["run", "FOLDER", "--template"], "gr", ["greeting"]),
        (["run", "FOLDER", "--template"], "x", []),
        (["run", "missing", "--template"], "", []),
        (["task", "list", "--status"], "waiting_for_r", ["waiting_for_retry"]),
        (["task"], "hist", ["history"]),
    ],
)
def test_a_shell_completes_templates_states_and_commands(
    words: list[str], incomplete: str, expected: list[str], folder: Path
) -> None:
    completion = ShellComplete(cli, {}, "tasker", "_TASKER_COMPLETE")

    found = completion.get_completions([str(folder) if word == "FOLDER" else word for word in words], incomplete)

    assert [item.value for item in found] == expected


def test_resuming_where_nothing_has_run_makes_no_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    result = invoke("run", "--resume", "0199c1f4-8a52-7c3e-9b1d-5d3a52000000")

    assert result.exit_code == 2
    assert "no database in .tasker/postgres" in result.stderr
    assert not (tmp_path / ".tasker").exists()


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("shop/nothing", "no template shop/nothing is registered: no database in"),
        ("greeting/flow", "greeting/flow does not exist, and no template greeting/flow is registered"),
    ],
)
def test_the_name_of_a_template_makes_no_database_to_look_it_up(
    target: str, said: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.parent)

    result = invoke("run", target)

    assert result.exit_code == 2
    assert said in result.stderr
    assert not (folder.parent / ".tasker").exists()


def test_an_empty_path_is_not_the_current_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)

    assert "PATH is empty" in refused("").stderr
