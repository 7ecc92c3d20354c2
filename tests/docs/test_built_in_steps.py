"""The page on built-in steps: its template runs, its message is the compiler's, its table is complete."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tasker
from tasker.errors import ResourceMissing
from tasker.template import compile_text
from tasker.template.builtin import BUILTIN, HTTP
from tasker.template.report import render_text
from tests.docs.snippets import snippets
from tests.support.repository import ROOT

PAGE = (ROOT / "docs" / "built-in-steps.md").read_text("utf-8")
TEMPLATE, REQUESTS = [snippet.text for snippet in snippets(PAGE) if snippet.language == "yaml"]
(FAKE,) = [snippet.text for snippet in snippets(PAGE) if snippet.language == "python"]
(MISTAKE,) = [snippet.text for snippet in snippets(PAGE) if snippet.language == "text"]


def test_template_runs_without_handlers(database_url: str, tmp_path: Path) -> None:
    file = tmp_path / "order.yaml"
    file.write_text(TEMPLATE, encoding="utf-8")
    with tasker.SyncApp(database_url) as app:
        report = app.run(file, {"order_id": "o-1", "lines": [{"price": 2.5}]}, timeout=60)
    assert report.results["summary"] == {
        "total": {"order": "o-1", "amount": 2.5},
        "check": {"valid": True, "problems": []},
    }


def test_message_of_a_mistake_is_what_the_compiler_says() -> None:
    compiled = compile_text(TEMPLATE.replace("message:", "mesage:"), file="order.yaml")
    assert MISTAKE.strip() in render_text(compiled.diagnostics, compiled.sources)


def test_requests_go_to_the_fake_of_the_page(database_url: str, tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    exec(FAKE, names)
    file = tmp_path / "welcome.yaml"
    file.write_text(f"name: welcome\nnamespace: shop\nversion: 1.0.0\n{REQUESTS}", encoding="utf-8")
    with tasker.SyncApp(database_url, resources={"crm": names["crm"]}) as app:
        report = app.run(file, {"customer_id": "c-1"}, timeout=60)
    assert report.results["note"]["json"] == {"email": "ada@example.com"}
    with tasker.SyncApp(database_url) as app, pytest.raises(ResourceMissing, match="`crm`"):
        app.run(file, {"customer_id": "c-2"}, timeout=60)


def test_every_built_in_step_and_input_is_in_a_table() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| ")]
    for name, builtin in BUILTIN.items():
        if builtin.plugin is not None:
            continue  # on the page of the plugins
        own = " ".join(rows) if name == HTTP else next(row for row in rows if row.startswith(f"| `{name}` |"))
        assert [key for key in (builtin.inputs or {}).get("properties", ()) if f"`{key}" not in own] == []
