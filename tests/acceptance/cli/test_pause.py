"""`tasker pause`, `tasker resume` and `App.pause` with real workers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import psycopg
import pytest

from tasker.app import App
from tests.acceptance.examples.workflow_case import WORKFLOWS
from tests.support.command_line import invoke, run_json

RESULTS = "orchestration_step_results"
LINEAR = WORKFLOWS / "linear_math"
TEMPLATE = "linear/linear_workflow"


async def test_a_paused_workflow_waits_and_ends_after_the_resume(database_url: str) -> None:
    async with App(database_url, handlers=[LINEAR]) as app:
        await app.run(LINEAR, {"value": 10})
        assert await app.pause("linear", actor="ops", reason="the provider is down")
        task = (await app.submit(LINEAR, {"value": 11})).task_uuid
        with pytest.raises(TimeoutError):
            await app.wait(task, timeout=0.2)
        assert (await app.tasks.report(task)).status == "waiting_for_dependencies"

        assert await app.resume("linear", actor="ops") == 1

        assert (await app.wait(task, timeout=30)).status == "complete"
        assert {step.attempts for step in (await app.tasks.report(task)).steps.values()} == {1}


def test_what_is_paused_is_listed_with_its_reason_until_it_is_resumed(database_url: str) -> None:
    run_json(LINEAR, database=database_url)

    paused = invoke("pause", "--template", TEMPLATE, "--reason", "wrong prices", database=database_url)
    again = invoke("pause", "--template", TEMPLATE, database=database_url)
    text = invoke("pause", "list", database=database_url).output
    (entry,) = json.loads(invoke("pause", "list", "--format", "json", database=database_url).stdout)["pauses"]
    resumed = invoke("resume", "--template", TEMPLATE, database=database_url)
    twice = invoke("resume", "--template", TEMPLATE, database=database_url)

    assert paused.output == f"paused {TEMPLATE}\n"
    assert "already paused" in again.output
    assert TEMPLATE in text
    assert "wrong prices" in text
    assert (entry["template"], entry["reason"]) == ("linear_workflow", "wrong prices")
    assert resumed.output.startswith(f"resumed {TEMPLATE}")
    assert "was not paused" in twice.output
    assert invoke("pause", "list", database=database_url).output == "no pauses\n"


async def _held(url: str) -> str:
    async with App(url, handlers=[LINEAR], work=False) as app:
        return (await app.submit(LINEAR, {"value": 11})).task_uuid


def test_a_paused_task_says_by_what_it_is_held_and_why(database_url: str) -> None:
    run_json(LINEAR, database=database_url)
    invoke("pause", "--template", TEMPLATE, "--reason", "wrong prices", database=database_url)
    task = asyncio.run(_held(database_url))

    def said() -> list[str]:
        commands = (["task", "show", task], ["task", "list"])
        return [invoke(*command, database=database_url).output for command in commands]

    for text in said():
        assert f"{TEMPLATE} is paused since 20" in text
        assert text.count(": wrong prices") == 1, "what waits for other steps is not held, nor is what has ended"
    assert f"waits: {TEMPLATE} is paused" in said()[0]
    (step, *_) = json.loads(invoke("task", "show", task, "--format", "json", database=database_url).stdout)["steps"]
    assert step["paused"]["reason"] == "wrong prices"

    invoke("resume", "--template", TEMPLATE, database=database_url)

    assert not any("is paused" in text for text in said())


def test_a_paused_queue_is_listed_and_told_by_the_status_of_the_broker_until_it_is_resumed(database_url: str) -> None:
    run_json(LINEAR, database=database_url)
    why = ("--reason", "a bad release")

    paused = invoke("pause", "--queue", RESULTS, *why, database=database_url)
    again = invoke("pause", "--queue", RESULTS, database=database_url)
    listed = invoke("pause", "list", database=database_url).output
    (entry,) = json.loads(invoke("pause", "list", "--format", "json", database=database_url).stdout)["pauses"]
    status = invoke("broker", "status", database=database_url).output
    queues = json.loads(invoke("broker", "status", "--format", "json", database=database_url).stdout)["queues"]
    ended = run_json(LINEAR, database=database_url)
    resumed = invoke("resume", "--queue", RESULTS, database=database_url)
    twice = invoke("resume", "--queue", RESULTS, database=database_url)

    assert paused.output == f"paused {RESULTS}\n"
    assert "already paused" in again.output
    assert [line.split()[:3] for line in listed.splitlines()[1:]] == [["queue", RESULTS, "0"]]
    assert "a bad release" in listed
    assert (entry["queue"], entry["namespace"], entry["held"]) == (RESULTS, None, 0)
    assert f"{RESULTS} is paused since 20" in status
    assert f"(a bad release). To resume: tasker resume --queue {RESULTS}" in status
    assert [queue["queue"] for queue in queues if queue["paused"]] == [RESULTS]
    assert ended["status"] == "complete", "its results do not pass the queue"
    assert resumed.output == f"resumed {RESULTS}: 0 messages in the queue\n"
    assert "was not paused" in twice.output
    assert invoke("pause", "list", database=database_url).output == "no pauses\n"
    assert "paused" not in invoke("broker", "status", database=database_url).output


@pytest.fixture(scope="module")
def known(module_database_url: str) -> Iterator[str]:
    """A database that knows the template, for what changes nothing there."""
    run_json(LINEAR, database=module_database_url)
    yield module_database_url
    assert invoke("pause", "list", database=module_database_url).output == "no pauses\n"


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (["--queue", "orchestration_step_result"], "no queue of that name", f"did you mean `{RESULTS}`?"),
        (["--queue", "nonsense"], "no queue of that name: nonsense", f"the orchestration has `{RESULTS[:14]}"),
        (["--queue", ""], "no queue of that name", "the orchestration has"),
        (["--queue", "worker_linear_queue"], "no queue of that name", "tasker pause linear"),
        ([RESULTS], "is not a namespace", f"--queue {RESULTS}"),
        (["linear", "--queue", RESULTS], "expected exactly one target", "or a queue"),
    ],
)
@pytest.mark.parametrize("command", ["pause", "resume"])
def test_a_queue_that_there_is_not_is_refused_with_what_is_meant(
    command: str, arguments: list[str], message: str, hint: str, known: str
) -> None:
    result = invoke(command, *arguments, database=known)

    assert result.exit_code == 2
    assert message in result.output
    assert hint in result.output.partition("Hint:")[2].replace("\n", " ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "expected exactly one target"),
        (["linear", "--template", TEMPLATE], "expected exactly one target"),
        (["--template", "linear"], "expected NAMESPACE/TEMPLATE"),
        (["--step", TEMPLATE], "expected NAMESPACE/TEMPLATE/STEP"),
        (["nowhere"], "no namespace of that name"),
        (["--step", f"{TEMPLATE}/none"], "no step of that name"),
    ],
)
def test_a_pause_that_names_nothing_is_refused_with_what_is_expected(
    arguments: list[str], message: str, known: str
) -> None:
    result = invoke("pause", *arguments, database=known)

    assert result.exit_code == 2
    assert message in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["slowpya"], "no namespace of that name in this database: slowpya"),
        (["--template", "linear/none"], "no template of that name"),
        (["--step", f"{TEMPLATE}/none"], "no step of that name"),
    ],
)
def test_a_resume_that_names_nothing_known_is_refused_with_where_to_look(
    arguments: list[str], message: str, known: str
) -> None:
    wrong = invoke("resume", *arguments, database=known)
    right = invoke("resume", "linear", database=known)

    assert (wrong.exit_code, right.exit_code) == (2, 0)
    assert message in wrong.output
    assert "tasker template list" in wrong.output.partition("Hint:")[2]
    assert "linear was not paused" in right.output


@pytest.mark.parametrize(
    "target", [("linear",), ("--template", TEMPLATE), ("--step", f"{TEMPLATE}/mathematical_add"), ("--task",)]
)
def test_who_watches_a_task_that_is_held_is_told_by_what_and_how_it_goes_on(
    target: tuple[str, ...], database_url: str
) -> None:
    run_json(LINEAR, database=database_url)
    task = asyncio.run(_held(database_url))
    named = (*target, task) if target == ("--task",) else target
    invoke("pause", *named, "--reason", "wrong prices", database=database_url)

    watched = invoke("task", "watch", task, "--timeout", "0.2", database=database_url)

    (line,) = [line for line in watched.stdout.splitlines() if "is paused since" in line]
    assert "wrong prices" in line
    assert line.endswith(f"to resume: tasker resume {' '.join(named)}")
    invoke("resume", *named, database=database_url)
    watched = invoke("task", "watch", task, "--timeout", "0.2", "--format", "json", database=database_url)
    assert json.loads(watched.stdout.splitlines()[-1])["pauses"] == []


def test_a_paused_queue_holds_the_tasks_whose_results_wait_in_it(database_url: str) -> None:
    task = asyncio.run(_held(database_url))
    invoke("pause", "--queue", RESULTS, "--reason", "a bad release", database=database_url)
    watch = ("task", "watch", task, "--timeout", "0.2")
    assert "is paused" not in invoke(*watch, database=database_url).stdout

    with psycopg.connect(database_url, autocommit=True) as admin:
        admin.execute("update tasker.workflow_steps set state = 'enqueued_for_orchestration' where state = 'enqueued'")

    assert f"to resume: tasker resume --queue {RESULTS}" in invoke(*watch, database=database_url).stdout
