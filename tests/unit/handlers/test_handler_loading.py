from __future__ import annotations

import logging
import os
import pickle
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tasker.errors import HandlerLoadError, HandlerNotFound, MethodNotFound
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.registry import resolve_for
from tasker.services.workflows.handlers import (
    Workflow,
    add_handlers,
    load_handlers,
    load_neighbouring_handlers,
    missing_callables,
    require_handlers,
)
from tasker.step_handler import StepHandler, step_handler
from tasker.template.builtin import BUILTIN
from tasker.template.plan import Plan
from tasker.types import StepContext, StepHandlerResult
from tests.unit.handlers.support import context, plan_of, step_plan

HANDLERS = """
from tasker.step_handler import StepHandler, step_handler
from . import rates

class ChargeCard(StepHandler):
    handler_name = "charge_card"
    def call(self, context):
        return self.success({"rate": rates.RATE})
    async def later(self, context):
        return self.success({"later": True})

class Unnamed(StepHandler):
    def call(self, context):
        return self.success()

@step_handler("ship_order")
def ship():
    return {"shipped": True}

def helper():
    return 1
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shop = tmp_path / "shop"
    shop.mkdir()
    (shop / "handlers.py").write_text(HANDLERS)
    (shop / "rates.py").write_text("RATE = 7\n")
    (shop / "workflow.yaml").write_text("name: shop\n")
    return shop


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def named(name: str, result: str) -> str:
    function = f"@step_handler({name!r})\ndef work():\n    return {{'from': {result!r}}}\n"
    return f"from tasker.step_handler import step_handler\n{function}"


def run(registry: HandlerRegistry, callable: str, **handler: Any) -> Any:
    return resolve_for(step_plan(callable=callable, **handler), registry).call(context()).result


def loaded_beside(folder: Path) -> HandlerRegistry:
    """What a program has that serves the template `plan_of`, which lies in that folder."""
    registry = load_handlers([])
    load_neighbouring_handlers(registry, [Workflow(plan_of(), folder)])
    return registry


def run_for(registry: HandlerRegistry, plan: Plan, callable: str) -> Any:
    return resolve_for(step_plan(callable=callable), registry, plan.id).call(context()).result


def test_handlers_beside_a_workflow_are_found_under_every_name(folder: Path) -> None:
    registry = loaded_beside(folder)
    assert registry.names_for(plan_of().id) == ["Unnamed", "charge_card", "ship_order"]
    for name in ("charge_card", "ChargeCard", "handlers.ChargeCard", "shop.handlers.ChargeCard"):
        assert run_for(registry, plan_of(), name) == {"rate": 7}
    for name in ("ship_order", "ship", "handlers.ship"):
        assert run_for(registry, plan_of(), name) == {"shipped": True}


def test_a_folder_without_handlers_is_fine(tmp_path: Path) -> None:
    core = sorted(name for name, step in BUILTIN.items() if step.plugin is None)
    assert loaded_beside(tmp_path).served_handlers() == core


def test_two_folders_do_not_disturb_each_other(folder: Path, tmp_path: Path) -> None:
    other = write(tmp_path / "other" / "handlers.py", named("pack", "other")).parent
    registry = load_handlers([folder, other])
    assert run(registry, "pack") == {"from": "other"}
    assert run(registry, "charge_card") == {"rate": 7}


def test_a_source_is_a_file_a_folder_or_a_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(tmp_path / "single.py", named("one", "file"))
    many = write(tmp_path / "many" / "deep" / "two.py", named("two", "folder")).parents[1]
    write(tmp_path / "many" / "test_two.py", "raise RuntimeError('tests are not handlers')")
    write(tmp_path / "lib" / "handlers_of_lib.py", named("three", "module"))
    monkeypatch.syspath_prepend(str(tmp_path / "lib"))
    registry = load_handlers([str(file), many, "handlers_of_lib"])
    assert [run(registry, n)["from"] for n in ("one", "two", "three")] == ["file", "folder", "module"]


def test_the_neighbour_wins_over_what_was_asked_for_and_that_over_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in ("environment", "beside", "asked"):
        write(tmp_path / place / "handlers.py", named(f"only_{place}", place) + named("work", place))
    monkeypatch.setenv("PYTHON_HANDLER_PATH", str(tmp_path / "environment"))
    registry = load_handlers([])
    assert run(registry, "work") == {"from": "environment"}
    add_handlers(registry, [tmp_path / "asked"])
    assert run(registry, "work") == {"from": "asked"}
    load_neighbouring_handlers(registry, [Workflow(plan_of(), tmp_path / "beside")])
    assert run_for(registry, plan_of(), "work") == {"from": "beside"}
    assert run(registry, "work") == {"from": "asked"}
    add_handlers(registry, [write(tmp_path / "asked_again.py", named("work", "asked again"))])
    assert run_for(registry, plan_of(), "work") == {"from": "beside"}


def test_several_paths_in_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [write(tmp_path / f"{n}.py", named(n, n)) for n in ("a", "b")]
    monkeypatch.setenv("PYTHON_HANDLER_PATH", os.pathsep.join(map(str, files)))
    assert load_handlers([]).list_handlers() == ["a", "b"]
    monkeypatch.setenv("PYTHON_HANDLER_PATH", str(tmp_path / "gone"))
    with pytest.raises(HandlerLoadError, match=r"PYTHON_HANDLER_PATH names .*gone, which does not exist"):
        load_handlers([])


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("x = 1\nraise ValueError('no')\n", r"handlers\.py:2: ValueError: no"),
        ("def f(:\n", r"handlers\.py:1: SyntaxError"),
        ("\n\nimport no_such_package\n", r"handlers\.py:3: ModuleNotFoundError"),
        ("import sys\nsys.exit(4)\n", r"handlers\.py:2: SystemExit: 4"),
    ],
)
def test_a_broken_file_is_named_with_line_and_exception(tmp_path: Path, code: str, said: str) -> None:
    write(tmp_path / "handlers.py", code)
    with pytest.raises(HandlerLoadError, match=said):
        loaded_beside(tmp_path)
    assert not [name for name in sys.modules if name.endswith(".handlers") and tmp_path.name in name]


def test_a_file_that_ends_the_process_is_told_where_that_belongs(tmp_path: Path) -> None:
    write(tmp_path / "handlers.py", "raise SystemExit\n")
    with pytest.raises(HandlerLoadError) as caught:
        loaded_beside(tmp_path)
    assert "if __name__ == '__main__':" in str(caught.value.hint)


def test_a_folder_called_handlers_py_is_no_file_with_handlers(tmp_path: Path) -> None:
    (tmp_path / "handlers.py").mkdir()
    with pytest.raises(HandlerNotFound, match="no handler 'work'"):
        require_handlers(loaded_beside(tmp_path), plan_of(step_plan("x", "work")))


def test_an_import_of_the_file_beside_it_is_explained(tmp_path: Path) -> None:
    write(tmp_path / "my_rates.py", "")
    write(tmp_path / "handlers.py", "import my_rates\n")
    with pytest.raises(HandlerLoadError) as caught:
        load_handlers([tmp_path])
    assert caught.value.hint is not None
    assert "`from . import my_rates`" in caught.value.hint


def test_two_files_that_claim_one_name_are_both_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [write(tmp_path / f"{n}.py", named("work", n)) for n in ("a", "b")]
    with pytest.raises(HandlerLoadError, match="two handlers claim the name 'work'") as caught:
        load_handlers(files)
    assert all(str(file) in str(caught.value) for file in files)
    monkeypatch.setenv("PYTHON_HANDLER_PATH", os.pathsep.join(map(str, files)))
    with pytest.raises(HandlerLoadError, match="two handlers claim the name 'work'"):
        load_handlers([])


def test_a_name_that_two_files_share_leads_to_neither_and_is_said_when_it_is_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = [write(tmp_path / f"{n}.py", named(n, n)) for n in ("a", "b")]
    with caplog.at_level(logging.WARNING):
        registry = load_handlers(files)
        require_handlers(registry, plan_of(step_plan("x", "a"), step_plan("y", "b")))
        assert not caplog.records
        assert missing_callables(registry, plan_of(step_plan(callable="work")))
    assert "'work' names several handlers" in caplog.text
    assert all(f"{file}:work" in caplog.text for file in files)


def test_a_file_that_is_loaded_again_is_no_conflict_and_its_newest_code_counts(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        registry = load_handlers([folder])
        write(folder / "handlers.py", HANDLERS.replace('"shipped": True', '"shipped": "again"'))
        add_handlers(registry, [folder])
        for name in ("charge_card", "ChargeCard", "handlers.ChargeCard", "shop.handlers.ship", "ship"):
            require_handlers(registry, plan_of(step_plan(callable=name)))
            assert run(registry, name) == ({"rate": 7} if "Card" in name or "card" in name else {"shipped": "again"})
    assert not caplog.records


def test_a_file_that_is_also_imported_as_a_module_is_no_conflict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    file = write(tmp_path / "also_a_module.py", named("charge", "work"))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "also_a_module", sys)  # taken away again at the end
    del sys.modules["also_a_module"]
    registry = load_handlers([file, "also_a_module"])
    require_handlers(registry, plan_of(step_plan("a", "charge"), step_plan("b", "work")))
    assert not caplog.records


def test_missing_callables_come_with_suggestions(folder: Path) -> None:
    registry = load_handlers([folder])
    plan = plan_of(step_plan("a", "charge_card"), step_plan("b", "charge_crad"), step_plan("c", "xyz"))
    assert missing_callables(registry, plan) == [("b", "charge_crad", ("charge_card",)), ("c", "xyz", ())]
    with pytest.raises(HandlerNotFound) as caught:
        require_handlers(registry, plan)
    assert "step 'b': no handler 'charge_crad' (did you mean 'charge_card'?)" in str(caught.value)
    assert caught.value.hint == "registered are: Unnamed, charge_card, ship_order"
    require_handlers(registry, plan_of(step_plan("a", "charge_card")))


def test_a_missing_method_is_an_error_of_its_own(folder: Path) -> None:
    with pytest.raises(MethodNotFound):
        missing_callables(load_handlers([folder]), plan_of(step_plan(callable="charge_card", method="void")))


def test_one_callable_is_resolved_once(folder: Path) -> None:
    registry = load_handlers([folder])
    first = resolve_for(step_plan("a", "charge_card"), registry)
    assert resolve_for(step_plan("b", "charge_card"), registry) is first
    assert resolve_for(step_plan("c", "charge_card", initialization={"x": 1}), registry) is not first
    registry.register("other", StepHandler)
    assert resolve_for(step_plan("a", "charge_card"), registry) is not first


def test_a_handler_that_is_replaced_while_somebody_looks_for_it_is_not_kept() -> None:
    class New(StepHandler):
        def call(self, context: StepContext) -> StepHandlerResult:
            return self.success()

    class Old(New):
        def __init__(self) -> None:  # as a thread does that loads changed handlers
            registry.register("greet", New)

    registry, step = HandlerRegistry(), step_plan("a", "greet")
    registry.register("greet", Old)

    names = [registry.of_step(step).name.split(".")[-2] for _ in range(2)]

    assert names == ["Old", "New"]


def test_the_kind_follows_the_method(folder: Path) -> None:
    registry = load_handlers([folder])
    kinds = [resolve_for(step_plan(callable="charge_card", method=m), registry).kind for m in ("call", "later")]
    assert kinds == ["sync", "async"]


def test_an_instance_serves_many_executions_unless_the_class_objects() -> None:
    class Counting(StepHandler):
        def __init__(self) -> None:
            self.calls = 0

        def call(self, context: StepContext) -> StepHandlerResult:
            self.calls += 1
            return self.success({"calls": self.calls})

    class Fresh(Counting):
        reuse_instance = False

    registry = HandlerRegistry()
    registry.register("counting", Counting)
    registry.register("fresh", Fresh)
    assert [run(registry, "counting") for _ in range(2)] == [{"calls": 1}, {"calls": 2}]
    assert [run(registry, "fresh") for _ in range(2)] == [{"calls": 1}, {"calls": 1}]


def test_a_child_process_loads_the_same_handler(folder: Path) -> None:
    found = resolve_for(step_plan(callable="charge_card"), load_handlers([folder]))
    assert found.source.loadable
    source = pickle.loads(pickle.dumps(found.source))
    assert source.load()(context()).result == {"rate": 7}
    program = f"import pickle; print(pickle.loads({pickle.dumps(source)!r}).load().__qualname__)"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "ChargeCard.call"


def test_a_decorated_function_can_be_loaded_in_a_child(folder: Path) -> None:
    source = resolve_for(step_plan(callable="ship_order"), load_handlers([folder])).source
    assert source.load()(context()).result == {"shipped": True}


def test_code_that_only_this_process_has_says_so() -> None:
    @step_handler("local")
    def local() -> None: ...

    registry = HandlerRegistry()
    registry.register("local", local)
    assert resolve_for(step_plan(callable="local"), registry).source.loadable is False


def test_a_replaced_handler_is_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    registry = HandlerRegistry()
    with caplog.at_level(logging.WARNING):
        registry.register("a", StepHandler)
        registry.register("a", StepHandler)
        assert caplog.text == ""
        registry.register("a", object)
    assert "handler 'a' is replaced" in caplog.text


def test_names_can_be_listed_and_forgotten(folder: Path) -> None:
    registry = load_handlers([folder])
    found = registry.get_handler_class("ship_order")
    assert found is not None
    assert issubclass(found, StepHandler)
    assert registry.is_registered("charge_card")
    assert registry.unregister("charge_card")
    assert not registry.unregister("charge_card")
    assert registry.handler_count() == 2
    registry.clear()
    assert registry.list_handlers() == []
    assert registry.resolve("ChargeCard") is None


def test_a_registry_resolves_every_form_of_a_definition(folder: Path) -> None:
    registry = load_handlers([folder])
    for spec in ("charge_card", {"callable": "charge_card", "method": "later"}):
        assert registry.resolve(spec) is not None


def test_the_shared_registry_loads_the_environment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHON_HANDLER_PATH", str(folder))
    HandlerRegistry.reset_instance()
    try:
        assert HandlerRegistry.instance(skip_bootstrap=True).handler_count() == 0
        HandlerRegistry.reset_instance()
        assert HandlerRegistry.instance().handler_count() == 3
        assert HandlerRegistry.instance() is HandlerRegistry.instance()
    finally:
        HandlerRegistry.reset_instance()


def test_where_no_handler_is_known_the_hint_says_where_they_are_looked_for() -> None:
    with pytest.raises(HandlerNotFound) as caught:
        require_handlers(HandlerRegistry(), plan_of(step_plan("a", "charge_card")))
    assert caught.value.hint is not None
    assert "handlers.py beside the template's file" in caught.value.hint
    assert "--handlers MODULE_OR_FOLDER" in caught.value.hint


def test_a_module_that_is_used_as_the_function_in_it_is_told_with_the_right_import(tmp_path: Path) -> None:
    (tmp_path / "audited.py").write_text("def audited(function):\n    return function\n")
    (tmp_path / "handlers.py").write_text("from . import audited\n\n\n@audited\ndef a():\n    return {}\n")
    with pytest.raises(HandlerLoadError, match="'module' object is not callable") as caught:
        load_handlers([tmp_path])
    assert "audited is a module here: write `from " in str(caught.value.hint)
    assert str(caught.value.hint).endswith(".audited import audited`")


def test_the_package_of_the_decorators_taken_for_one_of_them_says_what_to_import(tmp_path: Path) -> None:
    right = "`from tasker.step_handler import step_handler`"
    package: Any = import_module("tasker.step_handler")
    with pytest.raises(TypeError, match=right):
        package("a")
    with pytest.raises(TypeError, match=right):
        package(len)

    (tmp_path / "handlers.py").write_text(
        'from tasker import step_handler\n\n\n@step_handler("a")\ndef a():\n    return {}\n'
    )
    with pytest.raises(HandlerLoadError, match=rf"handlers\.py:4: TypeError: .*{right}"):
        load_handlers([tmp_path])
