"""The pages on steps of plugins and on writing one: their examples run, and their tables are complete."""

from __future__ import annotations

import os
import sqlite3
import tomllib
from pathlib import Path
from typing import Any

import httpx
import pytest

import tasker
from tasker.plugins.contributions import handlers_of, rules_of
from tasker.plugins.found import PluginChoice
from tasker.plugins.host import PluginHost, plugins_of
from tasker.resources.tables import HTTP_KEYS, KEYS, NEEDED, table_problems
from tasker.template import compile_text
from tasker.template.builtin import BUILTIN
from tasker.template.report import render_text
from tasker.testing.contexts import fake_http, step_context
from tasker_steps.command import make_command
from tasker_steps.files import make_files
from tasker_steps.sql import make_sql
from tests.docs.snippets import snippets
from tests.support.command_line import run_json
from tests.support.repository import ROOT
from tests.support.strangers import install_plugin
from tools.step_docs import FILE, page

PAGE, OWN = ((ROOT / "docs" / name).read_text("utf-8") for name in ("plugin-steps.md", "writing-built-in-steps.md"))


def blocks(text: str, language: str) -> list[str]:
    return [snippet.text for snippet in snippets(text) if snippet.language == language]


def test_report_of_the_page_is_written(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (reports := tmp_path / "reports").mkdir()
    with sqlite3.connect(tmp_path / "orders.db") as database:
        database.execute("create table invoices (id integer, customer text, total numeric, paid integer)")
        database.executemany("insert into invoices values (?, 'ada', ?, ?)", [(1, 10.5, 0), (2, 2, 0), (3, 7, 1)])
    database.close()
    text = blocks(PAGE, "toml")[0].replace("/srv/reports", str(reports)).replace("orders.db", f"{tmp_path}/orders.db")
    text = text.replace("/usr/bin/wc", next(path for path in ("/usr/bin/wc", "/bin/wc") if Path(path).exists()))
    (tmp_path / "worker.toml").write_text(text, encoding="utf-8")
    (file := tmp_path / "report.yaml").write_text(blocks(PAGE, "yaml")[0], encoding="utf-8")
    monkeypatch.setenv("TASKER_CONFIG_PATH", str(tmp_path / "worker.toml"))
    done = run_json(file, "--input", '{"customer": "ada"}', database=database_url)
    assert done["status"] == "complete", done
    assert (reports / "ada.txt").read_text() == "2 open invoices, 12.5 EUR"
    assert {step["name"]: step["result"] for step in done["steps"]}["count"]["stdout"] == "5 ada.txt\n"


def test_other_templates_and_tables_of_the_page_are_valid() -> None:
    for text in blocks(PAGE, "yaml")[1:]:
        steps = "".join(f"  {line}\n" for line in text.splitlines())
        assert compile_text(f"name: a\nnamespace: n\nversion: 1.0.0\nsteps:\n{steps}").diagnostics == ()
    tables = [tomllib.loads(text) for text in blocks(PAGE, "toml") + blocks(OWN, "toml")[1:]]
    assert [problem for table in tables for problem in table_problems(table)] == []


def test_fake_of_the_page_works() -> None:
    (text,) = blocks(PAGE, "python")
    exec(text, {})


def test_page_names_every_input_and_key() -> None:
    words = {word for part in PAGE.split("`")[1::2] for word in part.replace(",", " ").replace("`", " ").split()}
    for name, builtin in BUILTIN.items():
        if builtin.plugin is not None:
            assert name in PAGE or name.removeprefix("tasker.files") in words
            assert [key for key in (builtin.inputs or {})["properties"] if key not in words] == [], name
    for kind in KEYS.keys() - {"http"}:
        assert [key for key in KEYS[kind] - HTTP_KEYS if key not in words] == [], kind
        assert {*NEEDED[kind]} <= KEYS[kind]


def test_catalogue_is_what_the_code_says() -> None:
    assert FILE.read_text("utf-8") == page(), "run make generate"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PluginHost:
    """The plugin of the page, enabled."""
    install_plugin(tmp_path, monkeypatch, "shop", blocks(OWN, "python")[0], group="tasker.optional_plugins")
    return plugins_of(PluginChoice(enabled=("shop",)))


def test_own_step_has_thirty_lines_and_is_checked(shop: PluginHost) -> None:
    code = blocks(OWN, "python")[0].splitlines()[1:]
    assert len([line for line in code if line and not line.startswith(("from", '"""'))]) <= 30
    (template,) = blocks(OWN, "yaml")
    assert compile_text(template, rules=rules_of(shop)).diagnostics == ()
    wrong = compile_text(template.replace("currency", "curency"), file="rates.yaml", rules=rules_of(shop))
    (message,) = blocks(OWN, "text")
    assert message.strip() in render_text(wrong.diagnostics, wrong.sources)


def test_own_step_answers_and_runs_in_a_worker(
    shop: PluginHost, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json={"rate": 1.5}) if request.url.path.endswith("EUR") else httpx.Response(404)

    rate = handlers_of(shop)["shop.rate"]
    resources = {"rates": fake_http(answer)}
    values = {"resource": "rates", "currency": "XXX"}
    with pytest.raises(tasker.PermanentError, match="unknown currency"):
        rate().call(step_context(values, resources=resources))
    (file := tmp_path / "rates.yaml").write_text(blocks(OWN, "yaml")[0], encoding="utf-8")
    monkeypatch.setenv("TASKER_PLUGINS_ENABLED", "shop")
    with tasker.SyncApp(database_url, resources=resources) as app:
        report = app.run(file, {}, timeout=60)
    assert report.results["double"] == {"rate": 3.0}


def test_tables_of_the_page_make_resources(tmp_path: Path) -> None:
    tables: dict[str, Any] = tomllib.loads(blocks(PAGE, "toml")[0])["resources"]
    os.makedirs(tmp_path / "reports")
    for name, make in (("orders", make_sql), ("reports", make_files), ("count_words", make_command)):
        table = {key: value for key, value in tables[name].items() if key != "kind"}
        for key in ("url", "directory"):
            if key in table:
                table[key] = table[key].replace("/srv", str(tmp_path))
        assert make(table).kind == tables[name]["kind"]  # type: ignore[operator]
