"""Built-in steps of plugins: found by their hook, described by the catalogue, and checked with a template."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tasker.errors import HandlerNotFound, ResourceMissing
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.installed import offered
from tasker.plugins.contributions import handlers_of, rules_of
from tasker.plugins.found import PluginChoice
from tasker.plugins.host import PluginHost, plugins_of
from tasker.resources.tables import KEYS, NEEDED, known_kinds
from tasker.step_handler import BuiltinHandler, BuiltinStep
from tasker.template import compile_text
from tasker.template.builtin import BUILTIN
from tasker.template.plan import HandlerRef, StepPlan
from tasker.template.schema_check import schema_problems
from tasker.template.step_types import DEFAULT

PLUGINS = ("command", "files", "llm", "notify", "sql")


class Rates(BuiltinHandler):
    handler_name = "shop.rates"
    step = BuiltinStep(
        {"type": "object", "required": ["currency"], "properties": {"currency": {"type": "string"}}},
        result={"type": "object", "required": ["rate"], "properties": {"rate": {"type": "number"}}},
    )

    def call(self, context: Any) -> Any:
        return self.success({"rate": 1.0})


TEXTS = {"type": "object", "required": ["rate"], "properties": {"rate": {"type": "string"}}}


def host(*handlers: Any, name: str = "shop") -> PluginHost:
    return PluginHost({name: {"tasker_handlers": lambda: list(handlers)}})


def codes(step: str, plugins: PluginHost) -> list[str]:
    text = f"name: a\nnamespace: n\nversion: 1.0.0\nsteps:\n  - {{name: a, {step}}}\n"
    below = '  - {name: b, handler: h, dependencies: [a], inputs: {x: "${steps.a.rate * 2}"}}\n'
    return [problem.code for problem in compile_text(text + below, rules=rules_of(plugins)).diagnostics]


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ("handler: shop.rates, inputs: {currency: EUR}", []),
        ("handler: shop.rates, inputs: {curency: EUR}", ["T100"]),
        ("handler: shop.rates, inputs: {currency: 7}", ["T102"]),
        ("handler: shop.rates", ["T101"]),
    ],
)
def test_template_is_checked_against_the_schemas_of_a_plugin(step: str, expected: list[str]) -> None:
    assert codes(step, host(Rates)) == expected
    assert codes(step, PluginHost({})) == []


def test_result_of_a_plugin_s_step_has_a_type() -> None:
    wrong = type("Text", (Rates,), {"step": BuiltinStep(Rates.step.inputs, result=TEXTS)})
    assert codes("handler: shop.rates, inputs: {currency: EUR}", host(wrong)) == ["T092"]


class Unnamed(Rates):
    handler_name = ""


class Imposter(Rates):
    handler_name = "tasker.sql"


class Squatter(Rates):
    handler_name = "tasker.rates"


@pytest.mark.parametrize("offer", [Unnamed, Imposter, Squatter, object, None, "shop.rates"])
def test_handler_that_cannot_be_used_is_left_out_and_logged(offer: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, "tasker.plugins"):
        assert handlers_of(host(offer, Rates)) == {"shop.rates": Rates}
    assert "plugin_handler_refused plugin=shop" in caplog.text


def test_first_plugin_has_the_name(caplog: pytest.LogCaptureFixture) -> None:
    both = PluginHost({name: {"tasker_handlers": lambda: [Rates]} for name in ("a", "b")})
    assert handlers_of(both) == {"shop.rates": Rates}
    assert "plugin=b" in caplog.text


def test_enabled_plugins_have_the_steps_of_the_catalogue() -> None:
    assert handlers_of(plugins_of(PluginChoice())) == {}
    handlers = handlers_of(plugins_of(PluginChoice(enabled=PLUGINS)))
    assert sorted(handlers) == sorted(name for name, step in BUILTIN.items() if step.plugin is not None)
    for name, handler in handlers.items():
        assert handler.step is BUILTIN[name]
        assert handler.__doc__


def test_schemas_of_the_catalogue_are_valid() -> None:
    for name, step in BUILTIN.items():
        for schema in filter(None, (step.inputs, step.result)):
            assert schema_problems(schema) == [], name
        known = (step.inputs or {}).get("properties", {})
        assert not set(step.literal) - known.keys(), name
        assert step.kind is None or {step.kind} <= {*known_kinds()}
        assert step.chosen is None or {*step.chosen[1].values()} <= (step.result or {})["properties"].keys()


def test_kinds_of_the_plugins_are_installed_and_have_keys() -> None:
    assert {point.name for point in offered("tasker.resources")} >= {*PLUGINS}
    assert {*KEYS} == {*PLUGINS, "http"} == {*NEEDED}


def step_of(handler: str, **inputs: Any) -> StepPlan:
    return StepPlan("a", DEFAULT, HandlerRef(handler), ordinal=0, level=0, depends_on=(), static=True, inputs=inputs)


def test_registry_has_the_steps_of_enabled_plugins_and_says_where_others_are() -> None:
    registry = HandlerRegistry()
    with pytest.raises(HandlerNotFound) as missing:
        registry.of_step(step_of("tasker.sql", resource="orders"))
    assert 'pip install "tasker-engine[sql]"' in str(missing.value.hint)
    assert "tasker.sql" not in registry.served_handlers()
    registry.provide_steps({**handlers_of(plugins_of(PluginChoice(enabled=("sql", "files")))), "shop.rates": Rates})
    assert {"tasker.sql", "tasker.files.read", "shop.rates", "tasker.log"} <= {*registry.served_handlers()}
    registry.provide_resources(["orders", "in"])
    assert registry.of_step(step_of("tasker.sql", resource="orders")).kind == "sync"
    with pytest.raises(ResourceMissing, match="`out`"):
        registry.of_step(step_of("tasker.files.copy", resource="in", to_resource="out"))
    assert registry.lacking() == ["tasker.files.copy out"]


def test_compiler_imports_no_plugin() -> None:
    text = "name: a\nnamespace: n\nversion: 1.0.0\nsteps:\n  - {name: a, handler: tasker.sql, inputs: {resource: r}}"
    code = f"from tasker.template import compile_text; print([d.code for d in compile_text({text!r}).diagnostics])"
    code += "; import sys; print([name for name in sys.modules if name.startswith(('tasker_steps', 'sqlalchemy'))])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["['T101']", "[]"]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("tasker.sqll", "did you mean `tasker.sql`?"),
        ("tasker.files.raed", "did you mean `tasker.files.read`?"),
        ("tasker.unheard", "built-in steps: "),
    ],
)
def test_unknown_built_in_step_is_refused(name: str, hint: str) -> None:
    text = f"name: a\nnamespace: n\nversion: 1.0.0\nsteps:\n  - {{name: a, handler: {name}}}\n"
    (problem,) = compile_text(text).diagnostics
    assert (problem.code, problem.line, problem.column) == ("T170", 5, 24)
    assert (problem.hint or "").startswith(hint)


def test_path_of_a_class_is_no_built_in_step() -> None:
    text = "name: a\nnamespace: n\nversion: 1.0.0\nsteps:\n  - {name: a, handler: tasker.examples.shop.Pay}\n"
    assert compile_text(text).diagnostics == ()


def test_readme_names_every_plugin() -> None:
    text = (Path(__file__).parents[3] / "plugins" / "tasker_steps" / "README.md").read_text("utf-8")
    assert [name for name in PLUGINS if f"`{name}`" not in text] == []
