"""`tasker broker`: what is told about a provider, and what a migration sends and removes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tasker.messaging import StepHint
from tasker.views.fleet import TOLERANCE, QueueInfo
from tests.support.command_line import invoke
from tests.support.servers import brokers
from tests.support.servers.providers import Providers

WORKFLOW = Path(__file__).parents[2] / "chaos" / "workflow"
QUEUE = "worker_chaos_queue"
SHARED = [name for name in brokers.ENGINE_BACKENDS if name != "memory"]
TASKS = TOLERANCE + 10


@pytest.fixture
def providers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Providers]:
    made = Providers(tmp_path / "configuration.toml", QUEUE)
    monkeypatch.setenv("TASKER_CONFIG_PATH", str(made.file))
    monkeypatch.delenv("TASKER_MESSAGING_BACKEND", raising=False)
    yield made
    made.remove()


def submit(providers: Providers, url: str, name: str, count: int = TASKS) -> list[str]:
    return providers.submit(url, name, WORKFLOW, [{"seconds": 0, "n": number} for number in range(count)])


def told(*arguments: str, url: str) -> str:
    """The output of a command that does well."""
    result = invoke("broker", *arguments, database=url)
    assert result.exit_code == 0, result.output
    return result.output


def report(name: str, url: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(told("status", "--backend", name, "--format", "json", url=url))
    return found


def queue_of(found: dict[str, Any], queue: str = QUEUE) -> dict[str, Any]:
    return next(each for each in found["queues"] if each["queue"] == queue)


def enqueued(url: str) -> set[str]:
    with psycopg.connect(url) as connection:
        rows = connection.execute("select workflow_step_uuid::text from tasker.workflow_steps where state = 'enqueued'")
        return {row[0] for row in rows}


async def hinted(providers: Providers, name: str) -> list[str]:
    """The steps that the messages of the queue point to, all of which are taken."""
    async with providers.open(name) as messaging:
        steps: list[str] = []
        while messages := await messaging.receive_messages(QUEUE, 100, 60):
            steps += [str(StepHint.decode(message.payload).step_uuid) for message in messages]
            await messaging.ack_messages(messages)
        return steps


@pytest.mark.parametrize("name", SHARED)
def test_a_healthy_provider_has_as_many_messages_as_the_database_says(
    name: str, database_url: str, providers: Providers
) -> None:
    providers.need(name)
    submit(providers, database_url, name)
    found = report(name, database_url)
    assert (found["provider"], found["healthy"], found["remarks"]) == (name, True, [])
    queue = queue_of(found)
    assert (queue["depth"], queue["in_database"], queue["readers"]) == (TASKS, TASKS, 0)
    assert queue["oldest_seconds"] >= 0
    assert queue["in_flight"] in (0, None)
    table = told("status", "--backend", name, url=database_url)
    assert f"{name} answers" in table
    assert [QUEUE, str(TASKS)] in [line.split()[:2] for line in table.splitlines()]


def test_a_provider_that_lacks_what_the_database_has_is_told_and_a_migration_ends_that(
    database_url: str, providers: Providers
) -> None:
    providers.need("redis")
    submit(providers, database_url, "pgmq")
    (remark,) = report("redis", database_url)["remarks"]
    assert remark.startswith(f"{QUEUE}: {TASKS} of {TASKS} steps enqueued in the database have no message here")
    dry = told("migrate", "--to", "redis", "--dry-run", url=database_url)
    assert f"would be sent to redis: {TASKS} hints (chaos {TASKS}), 0 parked results" in dry
    would = json.loads(told("migrate", "--to", "redis", "--dry-run", "--format", "json", url=database_url))
    assert (would["action"], would["left"], would["to"]) == ("would_send", "pgmq", "redis")
    assert (would["steps"], would["results"], would["still_on_it"]) == ({"chaos": TASKS}, 0, [])
    assert report("redis", database_url)["remarks"] == [remark]
    assert f"sent to redis: {TASKS} hints" in told("migrate", "--to", "redis", url=database_url)
    assert report("redis", database_url)["remarks"] == []
    assert sorted(asyncio.run(hinted(providers, "redis"))) == sorted(enqueued(database_url))


def test_a_migration_that_was_interrupted_is_run_again_and_no_step_lacks_a_hint(
    database_url: str, providers: Providers
) -> None:
    providers.need("redis")
    submit(providers, database_url, "redis")

    async def lose_some() -> None:
        async with providers.open("redis") as messaging:
            await messaging.ack_messages(await messaging.receive_messages(QUEUE, TASKS // 2, 60))

    told("migrate", "--from", "redis", "--to", "pgmq", url=database_url)
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(f"delete from pgmq.q_{QUEUE} where msg_id % 2 = 0")
    again = told("migrate", "--from", "redis", "--to", "pgmq", url=database_url)
    assert f"sent to pgmq: {TASKS // 2} hints" in again
    assert "sent to pgmq: 0 hints" in told("migrate", "--from", "redis", "--to", "pgmq", url=database_url)
    assert queue_of(report("pgmq", database_url))["depth"] == TASKS
    asyncio.run(lose_some())
    told("migrate", "--from", "pgmq", "--to", "redis", url=database_url)
    assert set(asyncio.run(hinted(providers, "redis"))) == enqueued(database_url)


def test_draining_moves_what_no_row_tells_and_removes_the_old_queues(database_url: str, providers: Providers) -> None:
    providers.need("redis")
    submit(providers, database_url, "redis", 2)

    async def ask() -> None:
        async with providers.open("redis") as messaging:
            await messaging.ensure_orchestration_queues()
            await messaging.send_task_request({"n": 1})

    asyncio.run(ask())
    drained = told("migrate", "--from", "redis", "--to", "pgmq", "--drain", url=database_url)
    assert f"removed from redis: {QUEUE} (2 messages)" in drained
    assert report("redis", database_url)["queues"][0]["depth"] == 0
    assert queue_of(report("pgmq", database_url), "orchestration_task_requests")["depth"] == 1
    assert queue_of(report("pgmq", database_url))["depth"] == 2
    again = json.loads(
        told("migrate", "--from", "redis", "--to", "pgmq", "--drain", "--format", "json", url=database_url)
    )
    assert (again["action"], again["removed"]) == ("drained", {})


def test_a_drain_removes_no_queue_whose_requests_are_hidden_or_delayed(database_url: str, providers: Providers) -> None:
    """They exist nowhere else; a drain that comes when they are visible again moves them."""
    providers.need("redis")
    submit(providers, database_url, "pgmq", 1)
    queue = "orchestration_task_requests"
    drain = ("migrate", "--from", "pgmq", "--to", "redis", "--drain")
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("select pgmq.create(%s)", (queue,))
        for delay in (0, 0, 36_000):
            connection.execute("select pgmq.send(%s, '{}'::jsonb, %s)", (queue, delay))
        connection.execute("select pgmq.read(%s, 36000, 1)", (queue,))

        refused = invoke("broker", *drain, database=database_url)

        assert (refused.exit_code, "drain again" in refused.output) == (1, True), refused.output
        assert f"{queue} on pgmq still has 2" in refused.output
        connection.execute(f"update pgmq.q_{queue} set vt = clock_timestamp()")
    assert f"removed from pgmq: {queue} (2 messages)" in told(*drain, url=database_url)
    assert queue_of(report("redis", database_url), queue)["depth"] == 3


def test_the_provider_to_leave_is_the_configured_one_or_must_be_named(database_url: str, providers: Providers) -> None:
    providers.need("redis")
    submit(providers, database_url, "pgmq", 1)
    assert "still on pgmq: no running process" in told("migrate", "--to", "redis", url=database_url)
    nowhere = invoke("broker", "migrate", "--to", "redis", "--backend", "redis", database=database_url)
    assert (nowhere.exit_code, "--from NAME" in nowhere.output) == (2, True)
    same = invoke("broker", "migrate", "--to", "redis", "--from", "redis", database=database_url)
    assert (same.exit_code, "two different" in same.output) == (2, True)


@pytest.mark.parametrize("arguments", [["status", "--backend", "memory"], ["migrate", "--to", "memory"]])
def test_the_memory_backend_is_refused_with_the_reason(arguments: list[str], database_url: str) -> None:
    result = invoke("broker", *arguments, "--no-config", database=database_url)
    assert (result.exit_code, "lives inside one process" in result.output) == (2, True)


@pytest.mark.parametrize("name", [name for name in SHARED if name != "pgmq"])
def test_a_provider_that_is_down_is_an_error_that_says_where_it_was_looked_for(
    name: str, database_url: str, providers: Providers
) -> None:
    url = {
        "rabbitmq": "amqp://guest:guest@127.0.0.1:{}/%2F",
        "redis": "redis://127.0.0.1:{}",
        "nats": "nats://127.0.0.1:{}",
    }
    place = url[name].format(brokers.free_port())
    providers.file.write_text(f'[common.queues.{name}]\nurl = "{place}"\nconnection_timeout_seconds = 3\n')
    result = invoke("broker", "status", "--backend", name, database=database_url)
    assert result.exit_code == 1
    assert "Traceback" not in result.output
    assert "Hint: check" in result.output


def test_where_nothing_has_run_a_status_makes_no_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DATABASE_URL", raising=False)
    result = invoke("broker", "status", "--no-config")
    assert (result.exit_code, "no database in" in result.output) == (2, True)
    assert not (tmp_path / ".tasker").exists()


def test_watching_shows_it_again_until_interrupted(database_url: str) -> None:
    command = [
        sys.executable,
        "-m",
        "tasker",
        "broker",
        "status",
        "--watch",
        "--no-config",
        "--database-url",
        database_url,
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout
        seen = 0
        for line in process.stdout:
            seen += "pgmq answers" in line
            if seen == 2:
                break
        os.kill(process.pid, signal.SIGINT)
        process.communicate(timeout=60)
    assert (seen, process.returncode) == (2, 130)


@pytest.mark.parametrize(
    ("depth", "unseen", "expected", "said"),
    [
        (100, 0, 100, None),
        (100 - TOLERANCE, 0, 100, None),
        (50, 50, 100, None),
        (50, 0, 100, "50 of 100"),
        (1000, 0, 1100, None),
        (100 + TOLERANCE + 1, 0, 100, "messages too many"),
        (5, 0, None, None),
    ],
)
def test_a_difference_is_told_when_it_is_more_than_what_is_on_its_way(
    depth: int, unseen: int, expected: int | None, said: str | None
) -> None:
    remark = told_queue(depth, expected, unseen).remark()
    assert remark is None if said is None else said in str(remark)


def told_queue(depth: int, in_database: int | None, unseen: int = 0) -> QueueInfo:
    return QueueInfo("q", depth, None, unseen, None, None, 0, in_database)


def test_a_message_that_may_stand_for_several_results_is_taken_for_as_many() -> None:
    some = replace(told_queue(2, 64), per_message=32)
    assert some.remark() is None
    assert "200 of 264" in str(replace(some, in_database=264).remark())


def test_a_missing_queue_lacks_everything_that_waits() -> None:
    assert "50 of 50" in str(QueueInfo("q", 0, None, None, None, None, 0, 50).remark())


def test_a_queue_that_was_never_used_is_shown_with_its_readers(database_url: str) -> None:
    told("status", url=database_url)
    with psycopg.connect(database_url) as connection:
        for kind, backend in (("worker", "pgmq"), ("worker", "pgmq"), ("orchestrator", "pgmq"), ("worker", "redis")):
            connection.execute(
                "insert into tasker.workers (worker_uuid, kind, host, pid, version, namespaces, concurrency, backend, "
                "beat_at, lease_until, started_at) values (gen_random_uuid(), %s, 'here', 7, '1', array['fresh'], 1, "
                "%s, now(), now() + interval '1 minute', now())",
                [kind, backend],
            )

    found = {queue["queue"]: (queue["depth"], queue["readers"]) for queue in report("pgmq", database_url)["queues"]}
    (line,) = (line for line in told("status", url=database_url).splitlines() if line.startswith("worker_fresh_queue"))

    assert found["worker_fresh_queue"] == (0, 3)
    assert found["orchestration_step_results"] == (0, 1)
    assert line.split() == ["worker_fresh_queue", "0", "-", "-", "-", "3", "0"]
