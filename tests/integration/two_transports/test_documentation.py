"""docs/client.md can be followed, in front of a server that also works."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import tasker
from tasker.app.sync_wrapper import LoopThread
from tasker.template import compile_text
from tests.docs.snippets import Reader
from tests.integration.api.program import ORDERS, registered
from tests.integration.two_transports.conftest import server_of

PAGE = Path(__file__).parents[3] / "docs" / "client.md"


@pytest.fixture
def url(module_database_url: str) -> Iterator[str]:
    loop, app = LoopThread("server"), tasker.App(module_database_url, registry=registered())
    loop.start()
    server = server_of(app)
    address = loop.wait(server.__aenter__()).address
    (plan,) = compile_text(ORDERS).plans
    loop.wait(app.plans.register(plan))
    loop.wait(app.plan(plan))
    yield address
    loop.wait(server.__aexit__(None, None, None))
    loop.stop()


def test_the_page_on_clients_can_be_followed(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("TASKER_URL", "")
    monkeypatch.chdir(tmp_path)
    reader = Reader(tmp_path, "")
    page = PAGE.read_text(encoding="utf-8")
    reader.follow(page.replace("http://localhost:8080", url))

    assert reader.names["ended"].status == "complete"
    assert reader.names["event"].kind == "end"
    assert "complete" in reader.outputs["tasker task list"]
    assert re.search(r"local: Tasker .* is healthy", reader.outputs["tasker profile check"])
