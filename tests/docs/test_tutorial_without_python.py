"""The tutorial without Python can be followed from top to bottom, and shows what a reader sees."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tasker.template import compile_text
from tasker.template.report import render_text
from tests.docs.snippets import Reader, Snippet, snippets
from tests.support.repository import ROOT

PAGE = (ROOT / "docs" / "tutorial-without-python.md").read_text("utf-8")
SHOWN = [snippet.text for snippet in snippets(PAGE) if snippet.language == "text"]


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """The folder `service` as the page serves it."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path / "service"))) as server:
        serving = threading.Thread(target=server.serve_forever, args=(0.01,))
        serving.start()
        yield server.server_port
        server.shutdown()
        serving.join()


class Follower(Reader):
    """A reader who writes files of JSON and TOML, too, without the comment that names them."""

    def do(self, snippet: Snippet) -> None:
        if snippet.language in ("json", "toml") and snippet.file:
            path = self.folder / snippet.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(snippet.text.partition("\n")[2], encoding="utf-8")
        else:
            super().do(snippet)


def test_page_can_be_followed(database_url: str, tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATABASE_URL", database_url)
    outputs: list[str] = []
    for part in PAGE.replace("8321", str(port)).split("\n## "):
        reader = Follower(tmp_path, database_url)
        reader.follow(part)
        outputs += reader.outputs.values()
    weighed, mistake, joined, quoted = SHOWN
    assert [text for text in (weighed, joined, quoted) if not any(text in output for output in outputs)] == []
    assert mistake.strip() == mistake_of_the_page()
    assert list(tmp_path.rglob("*.py")) == []


def mistake_of_the_page() -> str:
    second = [snippet.text for snippet in snippets(PAGE) if snippet.language == "yaml"][1]
    text = second.replace("item.kilos", "item.kilo")
    compiled = compile_text(text, file="shipping/workflow.yaml")
    return render_text(compiled.diagnostics, compiled.sources).partition("\n\n")[0]


def test_reason_of_the_route_is_shown(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATABASE_URL", database_url)
    reader = Follower(tmp_path, database_url)
    third = [snippet for snippet in snippets(PAGE) if snippet.language == "yaml"][2]
    reader.do(third)
    command = """tasker run shipping --input '{"items": [{"name": "lamp", "kilos": 2.5}]}' --format json"""
    reader.do(Snippet("console", f"$ {command}", 1))
    (task,) = [line.split('"')[3] for line in reader.outputs[command].splitlines() if line.startswith('{"task_uuid')]
    reader.do(Snippet("console", f"$ tasker task show {task}", 1))
    assert "the post takes it" in reader.outputs[f"tasker task show {task}"]
