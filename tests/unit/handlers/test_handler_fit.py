"""What a handler reads and its step cannot have is refused before a task begins, with both places."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tasker.errors import HandlerLoadError, HandlerMismatch, HandlerNotFound, UsageError
from tasker.handlers.decorators import step_handler
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.services.workflows.files import check_handlers, load_path, load_plans, load_workflows
from tasker.services.workflows.handlers import Workflow, load_handlers, load_neighbouring_handlers, require_handlers
from tasker.template.plan import Plan
from tasker.template.schema_check import listed_properties
from tests.support.command_line import invoke

HEAD = "from pydantic import BaseModel\nfrom tasker.handlers.decorators import *\n"
SCHEMA = "input_schema: {type: object, properties: {card: {type: string}, amount: {type: integer}}}"
TEMPLATE = """name: shop
namespace: tests
version: 1.0.0
SCHEMA
steps:
  - {name: cart, handler: cart}
  - {name: stock, handler: cart}
  - {name: charge, handler: charge, dependencies: [cart]}
"""
CART = '@step_handler("cart")\ndef cart():\n    return {}\n'
BATCHES = """name: cut
namespace: tests
version: 1.0.0
steps:
  - {name: cut, handler: cut, type: batchable}
  - {name: work, handler: cart, type: batch_worker, dependencies: [cut]}
  - {name: sum, handler: sum, type: deferred, dependencies: [work]}
"""
CUT = '@batch_analyzer("cut", worker_template="work")\ndef cut():\n    return BatchConfig(0, 1)\n'


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "workflow.yaml").write_text(TEMPLATE.replace("SCHEMA", SCHEMA))
    return tmp_path


def loaded_beside(folder: Path, plan: Plan) -> HandlerRegistry:
    """What a program has that serves the plan."""
    registry = load_handlers([])
    load_neighbouring_handlers(registry, [Workflow(plan, folder)])
    return registry


def refused(folder: Path, handlers: str) -> str:
    """What is said about the handlers, without and with a plan to run; the same in both."""
    file = folder / "handlers.py"
    file.write_text(HEAD + handlers)
    (plan,) = load_plans(folder)
    with pytest.raises(HandlerMismatch) as caught:
        require_handlers(loaded_beside(folder, plan), plan)
    found = [d for d in check_handlers(load_path(folder), folder, []) if d.code == "T037"]
    assert [d.message in str(caught.value) and (d.hint or "") in str(caught.value) for d in found] == [True]
    assert f"{file}:" in found[0].message
    return f"line {found[0].line}: {found[0].message}: {found[0].hint}"


@pytest.mark.parametrize(
    ("declared", "says"),
    [
        (
            '@depends_on(c="crat")',
            "reads the result of `crat`, which is not a step of tests/shop: did you mean `cart`?",
        ),
        ('@depends_on(c="xyz")', "the steps above `charge`: `cart`"),
        ('@depends_on(c="stock")', "which is not above `charge`: add `stock` to the dependencies of `charge`"),
        ('@depends_on(c="charge")', "a step cannot read its own result"),
        ('@inputs("c")', "reads the input `c`, which the input_schema of tests/shop does not list"),
        ('@inputs("c")', "write `additionalProperties: true`"),
    ],
)
def test_what_a_function_reads_must_be_above_it_or_an_input(shop: Path, declared: str, says: str) -> None:
    said = refused(shop, f'{CART}\n@step_handler("charge")\n{declared}\ndef charge(c=None):\n    return {{}}\n')
    assert says in said
    assert said.startswith("line 8: charge (")
    assert "handlers.py:7)" in said


def test_a_model_of_the_inputs_must_fit_the_schema(shop: Path) -> None:
    model = "class Order(BaseModel):\n    card: str\n    amuont: int\n    note: str = ''\n"
    said = refused(
        shop, f'{CART}{model}@step_handler("charge")\n@inputs(Order)\ndef charge(inputs):\n    return {{}}\n'
    )
    assert "reads the input `amuont`" in said
    assert "did you mean `amount`?" in said


KINDS = """name: kinds
namespace: tests
version: 1.0.0
steps:
  - name: route
    type: KIND
    handler: route
  - {name: pay, handler: cart, dependencies: [route]}
  - {name: refuse, handler: cart, dependencies: [route]}
"""
BELOW = {"batchable": "  - {name: work, type: batch_worker, handler: cart, dependencies: [route]}\n"}
DECIDE = '@decision_handler("route")\ndef route():\n    return Decision.route(["refuse"])\n'
PLAIN = '@step_handler("route")\ndef route():\n    return {}\n'


@pytest.mark.parametrize(
    ("kind", "handlers", "says"),
    [
        ("standard", DECIDE, "write `type: decision` for `route` in the template, or declare the function with @step_"),
        ("batchable", DECIDE, "or declare the function with @batch_analyzer and return a BatchConfig"),
        ("decision", PLAIN, "declare the function with @decision_handler and return Decision.route([...])"),
        ("batchable", PLAIN, "declare the function with @batch_analyzer and return a BatchConfig"),
        ("standard", CUT.replace('"cut"', '"route"'), "write `type: batchable` for `route`"),
        ("decision", CUT.replace('"cut"', '"route"'), "or declare the function with @decision_handler"),
        ("standard", '@batch_worker("route")\ndef route(batch_context):\n    ...\n', "write `type: batch_worker` for"),
        ("decision", '@batch_worker("route")\ndef route(batch_context):\n    ...\n', "write `type: batch_worker` for"),
        (
            "decision",
            '@batch_aggregator("route", analyzer="a", worker_template="w")\ndef route(batches):\n    ...\n',
            "and `route` is a step of type `decision`",
        ),
        (
            "decision",
            '@api_handler("route", base_url="https://x.test")\ndef route(api):\n    ...\n',
            "@decision_handler",
        ),
        (
            "standard",
            "class Route(DecisionHandler):\n    handler_name = 'route'\n\n    def call(self, context): ...\n",
            "write `type: decision` for `route`",
        ),
    ],
)
def test_kind_of_handler_fits_the_type_of_its_step(tmp_path: Path, kind: str, handlers: str, says: str) -> None:
    (tmp_path / "workflow.yaml").write_text(KINDS.replace("KIND", kind) + BELOW.get(kind, ""))
    said = refused(tmp_path, f"from tasker.step_handler import DecisionHandler\n{CART}{handlers}")
    assert says in said
    assert said.startswith("line 7: ")


def test_aggregator_does_no_single_batch(tmp_path: Path) -> None:
    (tmp_path / "workflow.yaml").write_text(BATCHES.replace("work, handler: cart", "work, handler: sum"))
    sums = '@batch_aggregator("sum", analyzer="cut", worker_template="work")\ndef sum(batches):\n    return {}\n'
    said = refused(tmp_path, CUT + sums)
    assert said.startswith("line 6: ")
    assert "puts batches together (@batch_aggregator), and `work` is a step of type `batch_worker`" in said
    assert said.endswith("or declare the function with @batch_worker")


def test_run_refuses_a_decision_on_a_plain_step_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "workflow.yaml").write_text(KINDS.replace("KIND", "standard"))
    (tmp_path / "handlers.py").write_text(f"{HEAD}{CART}{DECIDE}")
    ran = invoke("run", tmp_path)
    assert (ran.exit_code, f"{tmp_path / 'workflow.yaml'}:7: step 'route'" in ran.output) == (2, True), ran.output
    assert "write `type: decision` for `route` in the template" in ran.output


def test_an_analyzer_names_the_batch_worker_below_it(tmp_path: Path) -> None:
    (tmp_path / "workflow.yaml").write_text(BATCHES)
    sums = '@step_handler("sum")\n@depends_on(first="work_001")\ndef sum(first):\n    return {}\n'
    assert "did you mean `work`?" in refused(tmp_path, CART + CUT.replace('"work"', '"wrok"') + sums)


@pytest.mark.parametrize(
    ("names", "says"),
    [
        ('analyzer="cut", worker_template="wrok"', "puts together `wrok`, which is not a batch_worker above `sum`"),
        (
            'analyzer="work", worker_template="work"',
            "reads the analysis of `work`, which is not a batchable step above",
        ),
    ],
)
def test_an_aggregator_names_the_batch_worker_above_it_and_its_analyzer(tmp_path: Path, names: str, says: str) -> None:
    (tmp_path / "workflow.yaml").write_text(BATCHES)
    sums = f'@batch_aggregator("sum", {names})\ndef sum(batches):\n    return {{}}\n'
    assert says in refused(tmp_path, CART + CUT + sums)


def test_a_batch_worker_has_no_result_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "workflow.yaml").write_text(BATCHES)
    sums = '@step_handler("sum")\n@depends_on(parts="work")\ndef sum(parts):\n    return {}\n'
    assert "@batch_aggregator" in refused(tmp_path, CART + CUT + sums)


@pytest.mark.parametrize(
    ("schema", "names"),
    [
        (None, None),
        ({"type": "object"}, None),
        ({"properties": {"a": {}}}, {"a"}),
        ({"properties": {"a": {}}, "additionalProperties": False}, {"a"}),
        ({"properties": {"a": {"properties": {"inner": {}}}}}, {"a"}),
        ({"properties": {"a": {}}, "additionalProperties": True}, None),
        ({"properties": {"a": {}}, "additionalProperties": {"type": "string"}}, None),
        ({"properties": {"a": {}}, "patternProperties": {"^x": {}}}, None),
        (
            {"properties": {"a": {}}, "allOf": [{"properties": {"b": {}}}], "then": {"properties": {"c": {}}}},
            set("abc"),
        ),
        ({"properties": {"a": {}}, "oneOf": [{"$ref": "#/$defs/x"}]}, None),
        ({"properties": {"a": {}}, "dependentSchemas": {"a": {"properties": {"b": {}}}}}, {"a", "b"}),
    ],
)
def test_the_names_that_a_schema_lists(schema: Any, names: set[str] | None) -> None:
    assert listed_properties(schema) == names


UNUSABLE = {
    "class Charge(StepHandler):\n    handler_name = 'charge'\n": "it has no `call`",
    "class Charge(StepHandler):\n    pass\n": "it has no `call`",
    "class Charge:\n    handler_name = 'charge'\n    def call(self): ...\n": "derive it from StepHandler",
    "def charge(card):\n    return {}\n": 'write @step_handler("charge") above it',
    "@inputs('card')\ndef pay_charge(card):\n    return {}\n": 'write @step_handler("shop.pay_charge") above it',
}


@pytest.mark.parametrize("handlers", UNUSABLE)
def test_what_has_the_name_and_is_no_handler_is_named_with_its_place(shop: Path, handlers: str) -> None:
    file = shop / "handlers.py"
    file.write_text(f"from tasker.step_handler import StepHandler\n{HEAD}{CART}{handlers}")
    if "pay_charge" in handlers:  # its template calls it with a prefix that is not the file's
        (shop / "workflow.yaml").write_text(
            TEMPLATE.replace("handler: charge", "handler: shop.pay_charge").replace("SCHEMA", "")
        )
    if "handler_name" not in handlers and "class" in handlers:
        (shop / "workflow.yaml").write_text(
            TEMPLATE.replace("handler: charge", "handler: Charge").replace("SCHEMA", "")
        )
    (plan,) = load_plans(shop)
    with pytest.raises(HandlerNotFound) as caught:
        require_handlers(loaded_beside(shop, plan), plan)
    assert f"{file}:7: the " in str(caught.value.hint)
    assert UNUSABLE[handlers] in str(caught.value.hint)


@pytest.mark.parametrize(
    ("decorated", "says"),
    [
        ("@step_handler\ndef charge():", 'write @step_handler("charge")'),
        ("@decision_handler\ndef charge():", 'write @decision_handler("charge")'),
        ("@step_handler('charge')\n@inputs\ndef charge(card):", 'write @inputs("card", "amount")'),
        ("@step_handler('')\ndef charge():", "needs the name of the handler"),
        ("@step_handler()\ndef charge():", "argument: 'name' write @step_handler(\"my_handler\")"),
        ("@step_handler('charge', retries=3)\ndef charge():", "unexpected keyword argument 'retries'"),
        ("@batch_analyzer('charge')\ndef charge():", '@batch_analyzer("my_handler", worker_template='),
        ("@depends_on\ndef charge(cart):", 'write @depends_on(parameter="a_step_above")'),
        ("@depends_on(cart=5)\ndef charge(cart):", 'write @depends_on(cart="a_step_above")'),
        (
            '@step_handler("charge")\nclass Charge: ...\ndef pay():',
            'write class Charge(StepHandler), with handler_name = "charge"',
        ),
    ],
)
def test_a_decorator_without_parentheses_is_refused_with_its_line(shop: Path, decorated: str, says: str) -> None:
    file = shop / "handlers.py"
    file.write_text(f"{HEAD}{decorated}\n    return {{}}\n")
    with pytest.raises(HandlerLoadError) as caught:
        load_handlers([file])
    line = 3 + decorated.startswith("@step_handler('charge')")
    assert f"{file}:{line}: @" in str(caught.value)
    assert says in f"{caught.value} {caught.value.hint}"


def test_a_file_left_out_for_its_name_is_named_and_loaded_when_it_is_given(shop: Path, tmp_path: Path) -> None:
    more = tmp_path / "more"
    more.mkdir()
    (more / "test_pay.py").write_text(f'{HEAD}{CART}@step_handler("charge")\ndef charge():\n    return {{}}\n')
    (plan,) = load_plans(shop / "workflow.yaml")
    with pytest.raises(HandlerNotFound) as caught:
        require_handlers(load_handlers([more]), plan)
    assert f"{more / 'test_pay.py'} has 'charge' and was left out for its name" in str(caught.value.hint)
    require_handlers(load_handlers([more / "test_pay.py"]), plan)


@pytest.mark.parametrize("name", ["test_handlers.py", "_handlers.py", "jobs.py"])
def test_a_file_beside_the_template_with_its_handlers_and_another_name_is_named(shop: Path, name: str) -> None:
    (shop / name).write_text(f'{HEAD}{CART}@step_handler("charge")\ndef charge():\n    return {{}}\n')
    (shop / "test_shop.py").write_text("def test_it(): assert run()['cart'] and run()['charge']\n")
    ran = invoke("run", str(shop), "--data-dir", str(shop / "none"))
    named = f"{shop / name} has 'cart' and 'charge', and beside a template only handlers.py is loaded: "
    assert (ran.exit_code, f"{named}rename it, or give it (--handlers {shop / name})" in ran.output) == (2, True)
    assert "test_shop.py" not in ran.output
    checked = invoke("template", "validate", str(shop), "--handlers", "tests.support")
    assert f"{shop / name} has 'charge', and beside a template only handlers.py is loaded" in checked.output
    assert invoke("template", "validate", str(shop), "--handlers", str(shop / name)).exit_code == 0


def test_run_and_validate_refuse_what_does_not_fit(shop: Path) -> None:
    charge = '@step_handler("charge")\n@depends_on(c="crat")\ndef charge(c):\n    return {}\n'
    (shop / "handlers.py").write_text(HEAD + CART + charge)
    ran = invoke("run", str(shop), "--data-dir", str(shop / "none"))
    assert (ran.exit_code, "did you mean `cart`?" in ran.output) == (2, True)
    assert not (shop / "none").exists()
    checked = invoke("template", "validate", str(shop), "--handlers", str(shop))
    assert (checked.exit_code, "T037" in checked.output) == (1, True)


def test_run_and_validate_tell_a_declaration_that_misses_its_parameter(shop: Path) -> None:
    charge = '@step_handler("charge")\n@inputs("crad")\ndef charge(card):\n    return {}\n'
    (shop / "handlers.py").write_text(HEAD + CART + charge)
    ran = invoke("run", str(shop), "--data-dir", str(shop / "none"))
    assert (ran.exit_code, "did you mean 'card'? @inputs says 'crad'" in ran.output) == (2, True)
    checked = invoke("template", "validate", str(shop), "--handlers", str(shop))
    assert (checked.exit_code, "T035" in checked.output, "did you mean 'card'?" in checked.output) == (1, True, True)
    assert "cannot be called" in checked.output


def test_a_plan_is_checked_again_when_its_handlers_change(shop: Path) -> None:
    charge = '@step_handler("charge")\n@depends_on(c="cart")\ndef charge(c):\n    return {}\n'
    (shop / "handlers.py").write_text(HEAD + CART + charge)
    workflows = load_workflows(shop)
    registry = load_handlers(())
    load_neighbouring_handlers(registry, workflows)
    require_handlers(registry, workflows[0].plan)
    require_handlers(registry, workflows[0].plan)
    (shop / "handlers.py").write_text(HEAD + CART + charge.replace('"cart"', '"stock"'))
    load_neighbouring_handlers(registry, workflows)
    with pytest.raises(HandlerMismatch):
        require_handlers(registry, workflows[0].plan)


@pytest.mark.parametrize(
    ("declared", "written", "says"),
    [
        ("once", "", "the template of `charge` does not say so: write `effect: once` for `charge` in the template"),
        ("once", ", effect: pure", "has the effect `once`, and the template of `charge` says `effect: pure`"),
        ("pure", ", effect: once", "has the effect `pure`, and the template of `charge` says `effect: once`"),
    ],
)
def test_effect_of_a_handler_that_its_step_does_not_have_is_refused(
    shop: Path, declared: str, written: str, says: str
) -> None:
    template = shop / "workflow.yaml"
    template.write_text(template.read_text().replace("dependencies: [cart]", "dependencies: [cart]" + written))
    charge = f'@step_handler("charge", effect="{declared}")\ndef charge():\n    return {{}}\n'
    assert says in refused(shop, CART + charge)


@pytest.mark.parametrize(("declared", "written"), [("once", "once"), ("pure", "pure"), ("transactional", None)])
def test_effect_of_a_handler_is_that_of_its_step(shop: Path, declared: str, written: str | None) -> None:
    template = shop / "workflow.yaml"
    says = f", effect: {written}" if written else ""
    template.write_text(template.read_text().replace("dependencies: [cart]", "dependencies: [cart]" + says))
    charge = f'@step_handler("charge", effect="{declared}")\ndef charge():\n    return {{}}\n'
    (shop / "handlers.py").write_text(HEAD + CART + charge)
    (plan,) = load_plans(shop)
    require_handlers(loaded_beside(shop, plan), plan)


def test_unknown_effect_of_a_handler_is_refused() -> None:
    with pytest.raises(UsageError, match="expected an effect, got 'twice'"):
        step_handler("charge", effect="twice")
