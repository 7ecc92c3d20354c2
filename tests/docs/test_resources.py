"""The page on resources: its configuration is valid, its handlers run, its sentence is that of an explanation."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import tasker
from tasker.known_secrets import KNOWN, KnownSecrets
from tasker.resources.http import make_http
from tasker.resources.tables import HTTP_KEYS, table_problems
from tasker.secrets import known_providers
from tasker.views.explain_reasons import REASONS, filled
from tasker_secrets.aws import KEYS as AWS_KEYS
from tasker_secrets.settings import REFRESH, TIMEOUT
from tasker_secrets.sops import KEYS as SOPS_KEYS
from tasker_secrets.vault import KEYS as VAULT_KEYS
from tests.docs.snippets import snippets
from tests.support.command_line import write_workflow
from tests.support.repository import ROOT

PAGE = (ROOT / "docs" / "resources.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return [snippet.text for snippet in snippets(PAGE) if snippet.language == language]


TABLES, SERVICE, PROVIDERS = map(tomllib.loads, blocks("toml"))
CLIENT, HANDLERS, TEST = blocks("python")
WORKFLOW = """
name: orders
namespace: shop
version: 1.0.0
steps:
  - {name: count, handler: count_orders}
  - {name: list, handler: list_orders}
"""


@pytest.fixture
def clients(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    for name in KnownSecrets.__slots__:
        monkeypatch.setattr(KNOWN, name, getattr(KnownSecrets(), name))
    module = ModuleType("shop_clients")
    exec(CLIENT, vars(module))
    monkeypatch.setitem(sys.modules, "shop_clients", module)
    return vars(module)


def test_configuration_is_valid_and_its_handlers_run(
    database_url: str, tmp_path: Path, clients: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [*table_problems(TABLES), *table_problems(SERVICE)] == []
    monkeypatch.setenv("ORDERS_URL", "postgresql://orders")
    folder = write_workflow(tmp_path / "orders", WORKFLOW, HANDLERS)
    with tasker.SyncApp(database_url, resources=TABLES["resources"]) as app:
        report = app.run(folder, {"customer": "c-9"}, timeout=60)
    assert report.results == {"count": {"count": 1}, "list": {"orders": [{"id": 17, "customer": "c-1"}]}}


def test_example_of_a_test_passes(clients: dict[str, Any]) -> None:
    names: dict[str, Any] = {"__name__": "handlers_of_the_page"}
    exec(HANDLERS, names)
    exec(TEST, names)


def test_sentence_is_that_of_an_explanation() -> None:
    words = {"handlers": "count_orders", "lacking": "orders", "refused_by": "w1"}
    assert filled(REASONS["unserved"].sentence, words) in blocks("text")[0]


def test_every_key_of_a_service_is_listed() -> None:
    assert [key for key in HTTP_KEYS if f"`{key}`" not in PAGE] == []
    table = SERVICE["resources"]["crm"]
    assert make_http({key: value for key, value in table.items() if key != "kind"}).kind == table["kind"]


def test_every_provider_is_listed_and_its_table_is_valid() -> None:
    assert [name for name in known_providers() if f'"{name}:' not in PAGE] == []
    assert list(table_problems(PROVIDERS)) == []
    for name, keys in {"sops": SOPS_KEYS, "vault": VAULT_KEYS, "aws": AWS_KEYS}.items():
        assert {*PROVIDERS["secrets"][name]} <= {*keys.split(), REFRESH, TIMEOUT}
        (row,) = [line for line in PAGE.splitlines() if line.startswith(f"| `{name}` |")]
        assert [key for key in keys.split() if f"`{key}`" not in row] == []
