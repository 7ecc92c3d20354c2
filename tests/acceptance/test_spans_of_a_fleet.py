"""The plugin `otel` in real processes: the spans that arrive are the history of the tasks, and no receiver no harm."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from uuid import uuid4

import pytest

import tasker
from tests.support.command_line import write_workflow
from tests.support.fleets.fleet import Fleet
from tests.support.fleets.oracle import Oracle
from tests.support.servers.span_receiver import ReceivedSpan, SpanReceiver, receiving
from tests.support.waiting import until

pytestmark = pytest.mark.slow

Workers = Callable[..., Fleet]
CALLER, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
NOBODY = "00000000-0000-0000-0000-000000000000"
TEMPLATE = """
    name: order
    namespace_name: traced
    version: "1.0.0"
    steps:
      - {name: check, handler: traced.check}
      - name: pay
        handler: traced.pay
        dependencies: [check]
        retry: {max_attempts: 3, backoff: fixed, backoff_base_ms: 10}
      - {name: stock, handler: traced.check, dependencies: [check]}
      - {name: ship, handler: traced.check, dependencies: [pay, stock]}
"""
HANDLERS = """
    import asyncio

    from tasker.errors import PermanentError
    from tasker.handlers.decorators import step_handler


    @step_handler("traced.check")
    async def check(context):
        await asyncio.sleep(0.02)
        return {"sent": context.trace_headers}


    @step_handler("traced.pay")
    async def pay(context):
        if context.get_input("card") == "stolen":
            raise PermanentError("card 4111 is stolen")
        if not context.is_retry():
            raise TimeoutError("card 4111: no answer")
        return {}
"""

LONE = """
    name: {name}
    namespace_name: traced
    version: "1.0.0"
    steps:
      - {{name: only, handler: traced.{name}, on_worker_lost: fail}}
"""
HANGS = """
    import asyncio

    from tasker.handlers.decorators import step_handler


    @step_handler("traced.hang")
    async def hang():
        await asyncio.sleep(600)
"""


@pytest.fixture
def workers(database_url: str, tmp_path: Path) -> Iterator[Workers]:
    """Of the workflow."""
    fleet = Fleet(database_url, tmp_path)
    workflow = write_workflow(tmp_path / "workflow", TEMPLATE, HANDLERS)

    def start(**endpoints: str) -> Fleet:
        for name, endpoint in endpoints.items():
            table = f'[plugins.otel]\nendpoint = "{endpoint}"\nservice_name = "{name}"\n'
            table += 'logs = "otlp"\ndetail = "all"\n'
            (tmp_path / f"{name}.toml").write_text(f'[plugins]\nenabled = ["otel"]\n{table}')
            fleet.environment["TASKER_CONFIG_PATH"] = str(tmp_path / f"{name}.toml")
            options = ("--concurrency", "2", "--database-url", database_url)
            fleet.program(name, "-m", "tasker", "worker", str(workflow), *options)
        for name in endpoints:
            until(
                lambda name=name: "serves traced" in fleet.log(name), "it works", show=lambda name=name: fleet.log(name)
            )
        return fleet

    yield start
    fleet.stop()


def submit(url: str, cards: Sequence[str], flags: str | None = None) -> list[str]:
    given = {} if flags is None else {"traceparent": f"00-{CALLER}-{SPAN}-{flags}", "tracestate": "vendor=1"}

    async def create() -> list[str]:
        async with tasker.App(url, work=False) as app:
            inputs = [{"card": card, "n": n, "flags": flags} for n, card in enumerate(cards)]
            return [(await app.submit("traced/order", each, **given)).task_uuid for each in inputs]

    return asyncio.run(create())


def submit_one(url: str, workflow: Path, **options: str) -> str:
    async def create() -> str:
        async with tasker.App(url, work=False) as app:
            return (await app.submit(workflow, idempotency_key=str(uuid4()), **options)).task_uuid

    return asyncio.run(create())


def command(fleet: Fleet, url: str, *arguments: str) -> None:
    """`tasker task ...`, in a process of its own."""
    name = arguments[0]
    fleet.program(name, "-m", "tasker", "task", *arguments, "--reason", "not needed", "--database-url", url)
    until(lambda: fleet.ended(name), f"{name} has ended", show=lambda: fleet.log(name))


def start_queued(fleet: Fleet, url: str, name: str, workflow: Path) -> None:
    """A worker that leaves its results to an orchestrator."""
    options = ("--result-path", "queued", "--lease", "3", "--database-url", url)
    fleet.program(name, "-m", "tasker", "worker", str(workflow), *options)
    until(lambda: "serves traced" in fleet.log(name), "it works", show=lambda: fleet.log(name))


def stop(fleet: Fleet) -> None:
    for name in [name for name, process in fleet.processes.items() if process.poll() is None]:
        fleet.signal(name, signal.SIGTERM)
        until(lambda name=name: fleet.ended(name), f"{name} has ended", show=lambda name=name: fleet.log(name))


def assert_as_in_the_history(spans: Sequence[ReceivedSpan], oracle: Oracle, silent: str) -> None:
    """A span for each time that a step began, and one for each task but the silent one; each failure is one."""
    attempts = [each for each in spans if each.name == "worker.step_execution"]
    begun = Counter(each.attributes["step_uuid"] for each in attempts)

    def by_step(table: str, which: str = "true") -> dict[str, int]:
        steps = f"select workflow_step_uuid, count(*) from tasker.{table} where {which} group by 1"
        found = f"select s.workflow_step_uuid::text, f.count from ({steps}) f join tasker.workflow_steps s"
        return dict(oracle.rows(f"{found} using (workflow_step_uuid) where s.task_uuid <> '{silent}'"))

    assert begun == by_step("workflow_step_transitions", "to_state = 'in_progress'")
    wrong = Counter(each.attributes["step_uuid"] for each in attempts if each.failed)
    assert wrong == by_step("step_failures")
    again = Counter(each.attributes["step_uuid"] for each in attempts if "step.retry" in each.events)
    assert again == by_step("workflow_step_transitions", "to_state = 'waiting_for_retry'")
    for name in ("step_claim", "submit_result"):
        assert Counter(each.attributes["step_uuid"] for each in spans if each.name == name) == begun
    assert_a_span_for_each_task(spans, oracle, silent)


def assert_a_span_for_each_task(spans: Sequence[ReceivedSpan], oracle: Oracle, silent: str = NOBODY) -> None:
    tasks = [each for each in spans if each.name == "task_execution"]
    ids = ("task_uuid", "state", "correlation_id")
    rows = oracle.rows(
        "select task_uuid::text, state, correlation_id::text from tasker.tasks"
        f" join tasker.task_details using (task_uuid) where task_uuid <> '{silent}'"
    )
    assert sorted(tuple(each.attributes[name] for name in ids) for each in tasks) == sorted(rows)


def assert_trees(spans: Sequence[ReceivedSpan], traced: Sequence[str]) -> None:
    """Attempts are children of their task, in its trace; tasks with a traceparent those of their caller."""
    tasks = {each.attributes["task_uuid"]: each for each in spans if each.name == "task_execution"}
    for task_uuid, task in tasks.items():
        expected = (CALLER, SPAN, "vendor=1") if task_uuid in traced else (task_uuid.replace("-", ""), "", "")
        assert (task.trace_id, task.parent_id, task.trace_state) == expected
        assert task.failed == (task.attributes["state"] == "error")
    for each in spans:
        if each.name != "task_execution":
            task = tasks[each.attributes["task_uuid"]]
            assert (each.trace_id, each.parent_id) == (task.trace_id, task.span_id)
            first = each.end if each.name == "step_claim" else each.start  # a claim is under way when its task comes
            assert each.start <= each.end
            assert task.start <= first
        if each.name == "worker.step_execution":
            assert each.end <= task.end
    assert len({(each.trace_id, each.span_id) for each in spans}) == len(spans)


def assert_carried_on(spans: Sequence[ReceivedSpan], oracle: Oracle) -> None:
    """What a handler asks others for is a child of its attempt's span."""
    attempts = {each.attributes["step_uuid"]: each for each in spans if each.name == "worker.step_execution"}
    rows = oracle.rows(
        "select s.workflow_step_uuid::text, r.result #>> '{sent,traceparent}' from tasker.workflow_steps s"
        " join tasker.step_results r using (task_uuid, ordinal) where r.result ? 'sent'"
    )
    for step, sent in rows:
        if step in attempts:
            span = attempts[step]
            assert sent == f"00-{span.trace_id}-{span.span_id}-01"
        else:
            assert sent.startswith(f"00-{CALLER}-")
            assert sent.endswith("-00")
    assert len(rows) > len(attempts) / 2


def assert_told_in_the_log(receiver: SpanReceiver) -> None:
    """The lines of a step are in the span of its attempt, and the last line of each worker is there."""
    good = [each for each in receiver.spans if each.attributes.get("end") == "succeeded"]
    lines = [each for each in receiver.lines if each.body.startswith("Step completed")]
    told = {(each.attributes["step_uuid"], each.trace_id, each.span_id) for each in lines}
    assert {(each.attributes["step_uuid"], each.trace_id, each.span_id) for each in good} <= told
    ended = [each.resource["service.name"] for each in receiver.lines if each.body == "Worker shutdown complete"]
    assert sorted(ended) == ["one", "two"]


def test_what_two_workers_do_arrives_as_one_tree_for_each_task(
    database_url: str, workers: Workers, oracle: Oracle
) -> None:
    with receiving() as receiver:
        fleet = workers(one=receiver.endpoint, two=receiver.endpoint)
        own, traced = submit(database_url, ["good"] * 6 + ["stolen"]), submit(database_url, ["good", "stolen"], "01")
        silent = submit(database_url, ["good"], "00")
        oracle.wait_for_the_end([*own, *traced, *silent])
        stop(fleet)
    spans = receiver.spans
    assert {each.resource["service.name"] for each in spans} == {"one", "two"}
    assert len([each for each in spans if each.name == "task_execution"]) == len(own) + len(traced)
    assert not [each for each in spans if each.attributes["task_uuid"] in silent]
    assert "card 4111" not in str(spans)
    assert_trees(spans, traced)
    assert_as_in_the_history(spans, oracle, silent[0])
    assert_carried_on(spans, oracle)
    assert_told_in_the_log(receiver)


def test_a_task_that_others_end_than_who_ran_it_if_anybody_did_has_one_span_too(
    database_url: str, oracle: Oracle, fleet: Fleet, tmp_path: Path
) -> None:
    """Cancelled and mended by commands, given up by a sweep for want of a worker or with a lost one, or ended by an
    orchestrator with results that a worker has left."""
    order = write_workflow(tmp_path / "order", TEMPLATE, HANDLERS)
    hang = write_workflow(tmp_path / "hang", LONE.format(name="hang"), HANGS)
    (alone := tmp_path / "alone.yaml").write_text(LONE.format(name="nobody"))
    with receiving() as receiver:
        (tmp_path / "tasker.toml").write_text(
            "[common.sweep]\nunserved_timeout_seconds = 1\n"
            f'[plugins]\nenabled = ["otel"]\n[plugins.otel]\nendpoint = "{receiver.endpoint}"\n'
        )
        fleet.environment["TASKER_CONFIG_PATH"] = str(tmp_path / "tasker.toml")
        trace = {"traceparent": f"00-{CALLER}-{SPAN}-01", "tracestate": "vendor=1"}
        cancelled, resolved = submit_one(database_url, alone, **trace), submit_one(database_url, alone)
        command(fleet, database_url, "cancel", cancelled)
        command(fleet, database_url, "resolve-step", resolved, "only")
        assert_a_span_for_each_task(receiver.spans, oracle)  # who is asked once sends at once

        fleet.program("orchestrator", "-m", "tasker", "orchestrator", "--database-url", database_url)
        start_queued(fleet, database_url, "worker", order)
        tasks = [*submit(database_url, ["good", "stolen"]), *submit(database_url, ["good"], "01")]
        oracle.wait_for_the_end([*tasks, unserved := submit_one(database_url, alone, **trace)])
        fleet.signal("worker", signal.SIGTERM)
        until(lambda: fleet.ended("worker"), "the worker has ended")

        hanging = submit_one(database_url, hang)
        start_queued(fleet, database_url, "killed", hang)
        until(
            lambda: oracle.value("select count(*) from tasker.workflow_steps where state = 'in_progress'") == 1,
            "it runs",
        )
        fleet.kill("killed")
        oracle.wait_for_the_end([hanging])
        stop(fleet)
    states = dict(oracle.rows("select task_uuid::text, state from tasker.tasks"))
    wanted = {cancelled: "cancelled", resolved: "complete", unserved: "error", hanging: "error"}
    assert {task: states[task] for task in wanted} == wanted
    assert_a_span_for_each_task(receiver.spans, oracle)
    assert_trees(receiver.spans, [cancelled, unserved, tasks[-1]])


def test_the_log_of_a_run_is_sent_where_one_is_written(database_url: str, fleet: Fleet, tmp_path: Path) -> None:
    order = write_workflow(tmp_path / "hello", LONE.format(name="hang"), HANGS.replace("600", "0"))
    with receiving() as receiver:
        (tmp_path / "tasker.toml").write_text(
            '[plugins]\nenabled = ["otel"]\n[plugins.otel]\nlogs = "otlp"\n' + f'endpoint = "{receiver.endpoint}"\n'
        )
        fleet.environment |= {"TASKER_CONFIG_PATH": str(tmp_path / "tasker.toml"), "TASKER_LOG_LEVEL": "info"}
        fleet.program("run", "-m", "tasker", "run", str(order), "--database-url", database_url)
        until(lambda: fleet.ended("run"), "it has ended", show=lambda: fleet.log("run"))
    assert "Task finalized" in fleet.log("run")
    assert [each.body for each in receiver.lines if each.body.startswith("Task finalized")]


def test_workers_whose_receiver_is_away_work_and_end_as_always_and_say_so_once(
    database_url: str, workers: Workers, oracle: Oracle
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as hangs:  # takes connections, and never answers
        with socket.create_server(("127.0.0.1", 0)) as free:
            refuses = free.getsockname()[1]
        ports = {"refused": refuses, "hangs": hangs.getsockname()[1]}
        fleet = workers(**{name: f"http://127.0.0.1:{port}" for name, port in ports.items()})
        tasks = submit(database_url, ["good"] * 8)
        oracle.wait_for_the_end(tasks)
        oracle.check(dict.fromkeys(tasks, "complete"))
        until(lambda: "span_receiver_down" in fleet.log("refused"), "it is told")
        stop(fleet)
    assert fleet.log("refused").count("span_receiver_down") == 1
    assert fleet.log("refused").count("log_receiver_down") == 1
    for name in ("refused", "hangs"):
        assert fleet.log(name).count("spans_lost") == 1
        assert fleet.log(name).count(" logs_lost") == 1
        assert "Worker shutdown complete" in fleet.log(name)
        assert "plugin_" not in fleet.log(name)
