"""The plugin `sentry`: which failures are sent, with which tags, and nothing of what a task was given."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from tasker.plugins.found import PluginChoice, installed
from tasker.plugins.hook_arguments import AttemptEnded, AttemptStarted, TaskFinished
from tasker.plugins.host import plugins_of, ready
from tasker_sentry.reporter import Reporter
from tasker_sentry.table import SentryTable


def attempt(number: int = 3, task: str = "task-1") -> AttemptStarted:
    return AttemptStarted(task, "step-1", "shop", "order", "pay", "shop.pay", number, 3, 7, "worker-1", "correlation-1")


def failed(number: int = 3, *, retryable: bool = True, task: str = "task-1") -> AttemptEnded:
    return AttemptEnded(attempt(number, task), "failed", 12, "timeout", "card 4111 refused", retryable)


class Receiver(BaseHTTPRequestHandler):
    bodies: list[bytes] = []  # noqa: RUF012  # of one test at a time

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.bodies.append(gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def dsn() -> Iterator[str]:
    """Of a server on loopback that keeps what it gets."""
    Receiver.bodies.clear()
    server = HTTPServer(("127.0.0.1", 0), Receiver)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://key@127.0.0.1:{server.server_port}/1"
    server.shutdown()
    thread.join()
    server.server_close()


def events() -> list[dict[str, Any]]:
    lines = [json.loads(line) for body in Receiver.bodies for line in body.splitlines() if line]
    return [line for line in lines if line.get("logger") == "tasker"]


async def test_the_last_failure_of_a_step_and_its_dead_task_are_sent_with_their_tags_and_without_the_message(
    dsn: str,
) -> None:
    choice = PluginChoice(enabled=("sentry",), settings={"sentry": SentryTable(dsn=dsn, environment="staging")})
    plugins = plugins_of(choice)
    plugins.notify("tasker_attempt_ended", failed(1))
    plugins.notify("tasker_attempt_ended", failed(3))
    plugins.notify("tasker_attempt_ended", AttemptEnded(attempt(), "succeeded", 3))
    for task, state in (("task-1", "error"), ("task-2", "complete"), ("task-3", "error")):
        plugins.notify("tasker_task_finished", TaskFinished(task, state))
    plugins.notify("tasker_process_stopped", None)
    await plugins.settle()
    failure, dead, unknown = events()
    assert failure["tags"] == {
        "task": "task-1",
        "step": "pay",
        "template": "order",
        "namespace": "shop",
        "attempt": "3",
        "worker": "worker-1",
        "handler": "shop.pay",
        "error_type": "timeout",
    }
    assert (failure["level"], failure["environment"]) == ("error", "staging")
    assert failure["fingerprint"] == ["tasker", "shop", "order", "pay", "timeout"]
    assert dead["tags"] == {"task": "task-1", "namespace": "shop", "template": "order"}
    assert (unknown["tags"], unknown["message"]) == ({"task": "task-3"}, "a task ended in error and needs a person")
    assert "card 4111" not in str(Receiver.bodies)
    assert "argv" not in str(Receiver.bodies)


def test_failures_that_are_tried_again_and_messages_are_sent_where_that_is_asked_for(dsn: str) -> None:
    reporter = Reporter(SentryTable(dsn=dsn, retried=True, messages=True))
    for ended in (failed(1), failed(2, retryable=False)):
        reporter.failed(ended)
    reporter.flush()
    assert [each["level"] for each in events()] == ["warning", "error"]
    assert events()[0]["exception"]["values"] == [{"type": "timeout", "value": "card 4111 refused"}]


def test_a_storm_of_failures_is_bounded_by_the_minute(dsn: str) -> None:
    now = [0.0]
    reporter = Reporter(SentryTable(dsn=dsn, events_per_minute=2), lambda: now[0])
    for second in (0, 1, 59, 60, 61, 62):
        now[0] = second
        reporter.failed(failed(task=f"at {second}"))
    reporter.flush()
    assert [each["tags"]["task"] for each in events()] == ["at 0", "at 1", "at 60", "at 61"]


@pytest.mark.parametrize(("dsn_given", "problem"), [("", "it needs a DSN"), ("http://nothing", "is no DSN")])
def test_without_a_place_to_send_to_it_is_refused(dsn_given: str, problem: str) -> None:
    (plugin,) = [each for each in installed() if each.name == "sentry"]
    refusal = ready(plugin, PluginChoice(settings={"sentry": SentryTable(dsn=dsn_given)}))[1]
    assert problem in (refusal or "")
