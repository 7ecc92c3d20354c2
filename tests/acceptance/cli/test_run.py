"""`tasker run` on a real database: outcome, exit code, and what is said."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import tasker
from tests.acceptance.examples.workflow_case import WORKFLOWS
from tests.support.command_line import Running, invoke, run_json, write_workflow

LINEAR = WORKFLOWS / "linear_math"
TASK_KEYS = [
    "task_uuid", "namespace", "template", "version", "status", "execution_status", "outcome", "duration_ms", "error",
    "steps",
]  # fmt: skip
STEP_KEYS = [
    "name", "type", "state", "settled", "attempts", "max_attempts", "depends_on", "result", "error", "duration_ms",
]  # fmt: skip


def test_a_workflow_runs_and_shows_its_final_result(database_url: str) -> None:
    result = invoke("run", LINEAR, database=database_url)

    assert result.exit_code == 0, result.output
    assert f"input: {LINEAR}/input.json\n" in result.stdout
    assert "mathematical_add: ✔ complete" in result.stdout
    assert result.stdout.endswith('mathematical_divide:\n  {"value": 5.0}\n')


def test_single_inputs_can_be_set(database_url: str) -> None:
    assert run_json(LINEAR, "--set", "value=3", database=database_url)["steps"][-1]["result"] == {"value": 1.5}


def test_the_json_object_has_exactly_the_promised_keys(database_url: str) -> None:
    result = invoke("run", LINEAR, "--json", database=database_url)

    found = json.loads(result.stdout)
    assert result.exit_code == 0
    assert "mathematical_add: ✔ complete" in result.stderr
    assert list(found) == TASK_KEYS
    assert [list(step) for step in found["steps"]] == [STEP_KEYS] * 4
    assert (found["status"], found["template"], found["error"]) == ("complete", "linear_workflow", None)


def test_a_failure_shows_step_error_handler_and_attempts(database_url: str) -> None:
    result = invoke("run", LINEAR, "--set", "divisor=0", database=database_url)

    assert result.exit_code == 1
    assert "mathematical_divide failed after 1 attempt of 3 (handler linear.divide)" in result.stdout
    assert "validation_error [division_by_zero]: cannot divide by zero" in result.stdout
    assert "(the failure is permanent)" in result.stdout


def test_a_failure_as_json_names_the_step(database_url: str) -> None:
    found = run_json(LINEAR, "--set", "divisor=0", database=database_url)

    assert found["status"] == "error"
    assert found["error"]["step"] == "mathematical_divide"
    assert list(found["steps"][-1]["error"])[:4] == ["type", "message", "code", "retryable"]


def test_every_run_is_a_new_task_unless_its_identity_is_given(database_url: str) -> None:
    first, second = (run_json(LINEAR, database=database_url) for _ in range(2))
    strict = [invoke("run", LINEAR, "--strict-identity", database=database_url).exit_code for _ in range(2)]
    keyed = [invoke("run", LINEAR, "--idempotency-key", "k", database=database_url).exit_code for _ in range(2)]

    assert first["task_uuid"] != second["task_uuid"]
    assert strict == keyed == [0, 2]


def test_a_registered_template_runs_by_its_name(database_url: str) -> None:
    assert invoke("template", "register", LINEAR, database=database_url).stdout == (
        "registered linear/linear_workflow:1.0.0\n"
    )

    found = run_json("linear/linear_workflow:1.0.0", "--handlers", LINEAR, "--set", "value=1", database=database_url)

    assert found["steps"][-1]["result"] == {"value": 0.5}
    assert "linear/linear_workflow:1.0.0  4" in invoke("template", "list", database=database_url).stdout


def test_a_registered_template_is_checked_before_anything_is_submitted(database_url: str) -> None:
    invoke("template", "register", LINEAR, database=database_url)

    without_handlers = invoke("run", "linear/linear_workflow", "--set", "value=1", database=database_url)
    without_input = invoke("run", "linear/linear_workflow", "--handlers", LINEAR, database=database_url)
    unknown = invoke("run", "linear/other", database=database_url)

    assert [r.exit_code for r in (without_handlers, without_input, unknown)] == [2, 2, 2]
    assert "4 of 4 steps have no handler" in without_handlers.stderr
    assert "$.value: is required and missing" in without_input.stderr
    assert "no template linear/other is registered" in unknown.stderr
    assert invoke("task", "list", database=database_url).stdout == "no tasks\n"


def test_a_database_that_cannot_be_reached_is_a_failure_and_no_mistake() -> None:
    result = invoke("run", LINEAR, "--json", database="postgresql://nobody@127.0.0.1:1/none")

    assert result.exit_code == 1
    assert json.loads(result.stdout)["error"]["type"] == "database_unavailable"


@pytest.mark.slow
def test_nothing_but_the_object_reaches_standard_output(database_url: str, tmp_path: Path) -> None:
    folder = write_workflow(
        tmp_path / "noisy",
        """
        name: noisy
        namespace: noisy
        version: 1.0.0
        steps:
          - {name: print, handler: noisy.print}
          - {name: shell, handler: noisy.shell}
          - {name: fork, handler: noisy.fork, execution: {mode: process}}
        """,
        """
        import subprocess
        from tasker.handlers.decorators import step_handler

        @step_handler("noisy.print")
        async def print_():
            print("printed by a handler")

        @step_handler("noisy.shell")
        def shell():
            subprocess.run(["echo", "printed by a program"])

        @step_handler("noisy.fork")
        def fork():
            print("printed by a process", flush=True)
        """,
    )
    run = Running.start("run", folder, "--json", "--database-url", database_url)

    code, output = run.end()

    assert code == 0, run.told
    assert json.loads(output)["status"] == "complete"
    assert {text in run.told for text in ("by a handler", "by a program", "by a process")} == {True}


@pytest.mark.slow
def test_a_run_imports_nothing_that_it_does_not_need(database_url: str) -> None:
    """Start-up is most of the time of a small workflow (rule 25)."""
    code = (
        "import sys; from click.testing import CliRunner; from tasker.cli.main import cli; "
        f"result = CliRunner().invoke(cli, ['run', {str(LINEAR)!r}, '--database-url', {database_url!r}]); "
        "print(result.exit_code, *sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    exit_code, *modules = done.stdout.split()
    assert exit_code == "0", done.stderr
    assert {"rich", "sqlalchemy", "alembic", "httpx", "structlog"} & set(modules) == set()


@pytest.mark.slow
@pytest.mark.parametrize("command", ["task list", "worker list", "dlq list"])
def test_a_command_that_reads_imports_nothing_that_runs_steps(command: str, database_url: str) -> None:
    """What it reads with is half of what it would have been with a worker."""
    code = (
        "import sys; from click.testing import CliRunner; from tasker.cli.main import cli; "
        f"result = CliRunner().invoke(cli, [*{command.split()!r}, '--database-url', {database_url!r}]); "
        "print(result.exit_code, *sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    exit_code, *modules = done.stdout.split()
    assert exit_code == "0", done.stderr
    running = {
        "tasker.handlers.registry.registry",
        "tasker.execution.worker",
        "tasker.app.worker_assembly",
        "tasker.process.runtime",
    }
    assert ({"pydantic", "yaml", "jsonschema"} | running) & set(modules) == set()


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, where the commands make a database of their own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DATABASE_URL", raising=False)
    return tmp_path


def test_a_first_run_says_that_it_makes_a_database_and_later_ones_what_others_have_left_there(own_folder: Path) -> None:
    first, second = (invoke("run", WORKFLOWS / "diamond", "--json") for _ in range(2))

    assert first.exit_code == second.exit_code == 0
    assert first.stderr.startswith("making a PostgreSQL database in .tasker/postgres, once")
    assert "PostgreSQL" not in second.stderr
    assert (own_folder / ".tasker" / ".gitignore").read_text() == "*\n"
    assert "unfinished" not in second.stderr

    with tasker.SyncApp(work=False) as app:
        for key, left in enumerate(("diamond", "linear_math", "linear_math")):
            given = json.loads((WORKFLOWS / left / "input.json").read_text())
            app.submit(WORKFLOWS / left, given, idempotency_key=str(key))
    third, fourth = (invoke("run", WORKFLOWS / "diamond", "--json") for _ in range(2))

    told = "other unfinished tasks: 1 in diamond, run alongside; 2 in other namespaces, not run"
    assert f"{told} (tasker task list)\n" in third.stderr
    assert "2 in other namespaces, not run" in fourth.stderr
