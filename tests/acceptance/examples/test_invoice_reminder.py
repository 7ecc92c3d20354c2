"""The workflow without Python sends its reminders: by `tasker run` to a service, and by workers that are killed."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import tasker
from tests.acceptance.examples.cases_built_in import invoice
from tests.acceptance.examples.workflow_case import WORKFLOWS, load_input
from tests.support.command_line import invoke
from tests.support.fleets.fleet import Fleet
from tests.support.fleets.oracle import Oracle
from tests.support.waiting import until

FOLDER = WORKFLOWS / "invoice_reminder"


def configuration(folder: Path, url: str) -> Path:
    """The configuration that lies beside the template, with the URL of this server."""
    text = (FOLDER / "worker.toml").read_text(encoding="utf-8")
    file = folder / "worker.toml"
    file.write_text(text.replace("http://127.0.0.1:8025", url), encoding="utf-8")
    return file


def test_folder_has_no_python() -> None:
    assert list(FOLDER.rglob("*.py")) == []


def test_resume_command_names_the_folder_whose_configuration_it_needs(
    database_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    command = ["run", str(FOLDER), "--env", "test", "--set", "dry_run=false"]
    failed = invoke(*command, database=database_url)
    assert failed.exit_code == 1, failed.output
    resume = next(line.split() for line in failed.output.splitlines() if "--resume" in line)
    assert resume[:3] == ["tasker", "run", str(FOLDER)]
    (tmp_path / "other.toml").write_text("", encoding="utf-8")
    monkeypatch.setenv("TASKER_CONFIG_PATH", str(tmp_path / "other.toml"))
    missing = invoke(*command, database=database_url)
    assert (missing.exit_code, "uses the resource `mail`" in missing.output) == (2, True)


class MailService(ThreadingHTTPServer):
    """A service that answers no request before it is told to."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Mailbox)
        self.sent: list[tuple[str, str]] = []
        self.answering = threading.Event()
        self.refused = 0
        self.url = f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore the requests of killed workers."""


class Mailbox(BaseHTTPRequestHandler):
    server: MailService

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        self.server.sent.append((self.headers["idempotency-key"], json.loads(body)["subject"]))
        assert self.server.answering.wait(120)
        self.send_response(503 if len(self.server.sent) <= self.server.refused else 202)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def mail() -> Iterator[MailService]:
    with MailService() as service:
        serving = threading.Thread(target=service.serve_forever)
        serving.start()
        yield service
        service.answering.set()
        service.shutdown()
        serving.join()


def submit(url: str, letters: int) -> list[str]:
    """Tasks with one reminder each."""
    inputs = [
        load_input("invoice_reminder") | {"dry_run": False, "invoices": [invoice(f"I-{n}", 20)]} for n in range(letters)
    ]
    with tasker.SyncApp(url, work=False) as app:
        return [app.submit(FOLDER, values).task_uuid for values in inputs]


def test_refused_reminder_is_sent_again_with_the_same_key(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mail: MailService
) -> None:
    mail.refused = 1
    mail.answering.set()
    monkeypatch.setenv("TASKER_CONFIG_PATH", str(configuration(tmp_path, mail.url)))
    command = ["run", str(FOLDER), "--env", "test", "--set", "dry_run=false", "--json"]
    done = invoke(*command, database=database_url)
    assert done.exit_code == 0, done.output
    results = {step["name"]: step["result"] for step in json.loads(done.stdout)["steps"]}
    assert results["summary"]["sent"] == 2
    assert Counter(key for key, _ in mail.sent).most_common()[0][1] == 2
    assert {subject for _, subject in mail.sent} == {"Reminder: invoice I-214", "Reminder: invoice I-230"}


@pytest.mark.slow
def test_killed_workers_send_each_reminder_under_one_key(
    database_url: str, tmp_path: Path, fleet: Fleet, oracle: Oracle, mail: MailService
) -> None:
    """Two workers are killed while the service has their requests and has not answered; the third one sends them."""
    fleet.environment["TASKER_CONFIG_PATH"] = str(configuration(tmp_path, mail.url))
    worker = ["-m", "tasker", "worker", str(FOLDER), "--lease", "3", "--database-url", database_url]
    tasks = submit(database_url, 9)
    for name in ("first", "second"):
        before = len(mail.sent)
        fleet.program(name, *worker)
        until(lambda before=before: len(mail.sent) > before, f"{name} sends", show=lambda name=name: fleet.log(name))
        fleet.kill(name)
    mail.answering.set()
    fleet.program("third", *worker)
    oracle.wait_for_the_end(tasks)
    oracle.check(dict.fromkeys(tasks, "complete"))
    assert oracle.failures("worker_lost") > 0
    assert len(mail.sent) > 9
    assert len({key for key, _ in mail.sent}) == len({*mail.sent}) == 9
