"""The page on built-in steps: its template runs, its message is the compiler's, its table is complete."""

from __future__ import annotations

from pathlib import Path

import tasker
from tasker.template import compile_text
from tasker.template.builtin import BUILTIN
from tasker.template.report import render_text
from tests.docs.snippets import snippets
from tests.support.repository import ROOT

PAGE = (ROOT / "docs" / "built-in-steps.md").read_text("utf-8")
(TEMPLATE,) = [snippet.text for snippet in snippets(PAGE) if snippet.language == "yaml"]
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


def test_every_built_in_step_and_input_is_in_the_table() -> None:
    for name, builtin in BUILTIN.items():
        (row,) = [line for line in PAGE.splitlines() if line.startswith(f"| `{name}` |")]
        assert [key for key in (builtin.inputs or {}).get("properties", ()) if f"`{key}" not in row] == []
