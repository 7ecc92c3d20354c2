"""A worker with a configuration runs no code that a template names, unless it is registered, found, or allowed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tasker.app.configured import UNCONFIGURED, configured
from tasker.errors import HandlerNotFound
from tasker.registry import resolve_for
from tasker.services.workflows.handlers import load_handlers, require_handlers
from tasker.settings.catalogue import single_process
from tasker.settings.check import check
from tasker.settings.nested import nested
from tasker.template import compile_text
from tasker.template.plan import Plan

TEMPLATE = """
name: order
namespace_name: shop
version: "1.0.0"
steps:
  - {name: pay, handler: CALLABLE}
"""
HANDLERS = """
from tasker.step_handler import StepHandler

class Charge(StepHandler):
    def call(self, context):
        return self.success({})
"""


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that is not loaded yet."""
    (tmp_path / "their_shop").mkdir()
    (tmp_path / "their_shop" / "__init__.py").touch()
    (tmp_path / "their_shop" / "pay.py").write_text(HANDLERS)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("their_shop", "their_shop.pay"):
        monkeypatch.delitem(sys.modules, name, raising=False)


def plan(callable: str) -> Plan:
    return compile_text(TEMPLATE.replace("CALLABLE", callable)).plans[0]


def importable(*allow: str) -> tuple[str, ...]:
    """What a worker with this configuration lets templates import."""
    settings = check(nested({"worker.handlers.allow": list(allow)} if allow else {})).settings
    assert settings is not None
    return configured(settings).importable


@pytest.mark.parametrize("path", ["their_shop.pay.Charge", "their_shop::pay::Charge"])
def test_a_path_is_refused_with_template_step_and_what_to_write_and_nothing_of_it_is_run(path: str) -> None:
    registry, order = load_handlers([], importable()), plan(path)
    with pytest.raises(HandlerNotFound) as caught:
        require_handlers(registry, order)
    assert f"shop/order:1.0.0: 1 of 1 steps have no handler:\n  step 'pay': no handler '{path}'" in str(caught.value)
    assert f'to import {path} by path, write [worker.handlers] allow = ["their_shop.*"]' in str(caught.value.hint)
    with pytest.raises(HandlerNotFound, match=r"\(step 'pay'\); shop/order:1\.0\.0 may not import it"):
        resolve_for(order.steps[0], registry, order.id)
    assert "their_shop" not in sys.modules


@pytest.mark.parametrize("allow", ["their_shop.*", "their_shop.pay.Charge", "*"])
def test_a_path_that_is_listed_is_imported(allow: str) -> None:
    require_handlers(load_handlers([], importable(allow)), plan("their_shop.pay.Charge"))


@pytest.mark.parametrize("allow", ["their_sho.*", "their_shop", "their_shop.other.*"])
def test_a_path_beside_the_list_is_refused(allow: str) -> None:
    with pytest.raises(HandlerNotFound):
        require_handlers(load_handlers([], importable(allow)), plan("their_shop.pay.Charge"))


def test_handlers_that_are_registered_or_found_need_no_entry() -> None:
    registry = load_handlers(["their_shop"], importable())
    for name in ("Charge", "their_shop.pay.Charge"):
        require_handlers(registry, plan(name))


def test_one_process_that_runs_its_own_templates_imports_what_they_name() -> None:
    settings = check(nested(dict(single_process()))).settings
    assert settings is not None
    assert configured(settings).importable == UNCONFIGURED.importable == ("*",)


@pytest.mark.parametrize("entry", ["", "my project", "shop.*.pay", "*.shop", "a/b.py", ".*"])
def test_what_is_no_path_is_no_entry(entry: str) -> None:
    (problem,) = check(nested({"worker.handlers.allow": [entry]})).problems
    assert "my_project.*" in problem.fix
