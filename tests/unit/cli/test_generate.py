"""Code and tests are made of templates; what people wrote beside them is kept."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from pydantic import TypeAdapter

from tasker.cli.main import cli
from tasker.errors import UsageError
from tasker.services.workflows.contracts import CERTAIN, _lenient
from tasker.services.workflows.generated_parts import with_generated_part
from tasker.simulation.scenarios import read_scenarios
from tasker.simulation.simulate import simulate
from tasker.template import compile_text
from tasker.template.python_types import python_types
from tasker.template.schema_fit import differences
from tests.support.repository import ROOT

TEMPLATE = """
name: checkout
namespace_name: shop
version: 1.0.0
input_schema: {type: object, required: [amount], properties: {amount: {type: integer}, gift: {type: boolean}}}
steps:
  - {name: quote, handler: shop.quote, result_schema: {type: object, properties: {id: {type: string}}}}
  - {name: choose, type: decision, handler: shop.choose, dependencies: [quote]}
  - {name: ship, handler: shop.ship, dependencies: [choose], description: Sends "it" off}
  - {name: wrap, handler: shop.gift-wrap, dependencies: [quote], when: input.?gift.orValue(false)}
"""
STR, INT = {"type": "string"}, {"type": "integer"}
INNER = {"type": "object", "properties": {"deep": INT}}
NODE = {
    "type": "object",
    "required": ["next"],
    "properties": {"next": {"anyOf": [{"$ref": "#/$defs/n"}, {"type": "null"}]}},
}
SCHEMAS: list[dict[str, Any]] = [
    {"type": "object", "properties": {"class": STR, "a-b": {"type": "integer"}, "json": {"type": "null"}}},
    {"type": "object", "required": ["x"], "properties": {"tags": {"type": "array", "items": {"enum": ["a", 1, None]}}}},
    {"type": "object", "additionalProperties": {"type": "number"}},
    {"type": "object", "additionalProperties": True, "properties": {"int": INT, "n": INT}},
    {"$defs": {"n": NODE}, **NODE},
    {"type": "array", "items": {"type": ["integer", "string"]}},
    {"type": "object", "properties": {"rate": {"const": 1.5}, "any": {}, "of": {"oneOf": [{"type": "string"}, INNER]}}},
]  # fmt: skip


def loaded(code: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    module = ModuleType("made_types")
    monkeypatch.setitem(sys.modules, "made_types", module)
    exec(compile(code, "made_types", "exec", dont_inherit=True), module.__dict__)
    return module


def tasker(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["generate", *map(str, arguments)])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "workflow.yaml").write_text(TEMPLATE)
    return tmp_path


@pytest.mark.parametrize("schema", SCHEMAS)
def test_a_generated_model_takes_what_its_schema_takes(schema: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    text = yaml.safe_dump({
        "name": "x", "namespace": "x", "version": "1.0.0",
        "steps": [{"name": "made", "handler": "h", "result_schema": schema}],
    })  # fmt: skip
    result = compile_text(text)
    assert result.ok, result.diagnostics
    wanted = TypeAdapter(loaded(python_types(result.plans[0]), monkeypatch).MadeResult).json_schema()
    found = [d for d in differences(schema, _lenient(wanted)) if d.misfit in CERTAIN]
    assert found == []


def test_models_of_the_examples_can_be_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    for file in sorted((ROOT / "workflows").glob("*/workflow.yaml")):
        for plan in compile_text(file.read_text()).plans:
            assert loaded(python_types(plan), monkeypatch)


def test_generated_types_keep_what_is_around_them(folder: Path) -> None:
    file = folder / "workflow_types.py"
    assert tasker("types", folder, "--check").exit_code == 1
    assert not file.exists()
    assert tasker("types", folder).output == f"wrote {file}\n"
    file.write_text("ABOVE = 1\n" + file.read_text() + "BELOW = 2\n")
    assert tasker("types", folder, "--check").exit_code == 0
    (folder / "workflow.yaml").write_text(TEMPLATE.replace("id: {type: string}", "nr: {type: string}"))
    assert tasker("types", folder, "--check").exit_code == 1
    tasker("types", folder)
    text = file.read_text()
    assert (text.startswith("ABOVE = 1\n"), text.endswith("BELOW = 2\n"), "nr: str | None" in text) == (
        True,
        True,
        True,
    )
    assert tasker("types", folder).output == ""


def test_types_that_a_formatter_has_written_are_the_same(folder: Path) -> None:
    tasker("types", folder)
    file = folder / "workflow_types.py"
    file.write_text(file.read_text().replace("\n\n\nclass", "\n\nclass").replace(" | None = None", "|None=None"))
    assert tasker("types", folder, "--check").exit_code == 0


def test_a_generated_part_without_an_end_is_refused() -> None:
    whole = with_generated_part("", "types", "x = 1")
    for broken in (whole.replace("# <<<", "#"), whole + whole):
        with pytest.raises(UsageError, match="no clear end"):
            with_generated_part(broken, "types", "x = 2")


def test_stubs_fit_their_steps_and_are_written_once(folder: Path) -> None:
    file = folder / "handlers.py"
    missing = tasker("handlers", folder, "--check")
    assert missing.exit_code == 1
    assert f"{file}: no handler shop.gift-wrap\n" in missing.output
    assert tasker("handlers", folder).output == f"wrote {file}\n"
    text = file.read_text()
    assert "@depends_on(quote='quote')" in text
    assert tasker("handlers", folder).output == ""
    assert CliRunner().invoke(cli, ["template", "validate", str(folder)]).output == ""

    (folder / "workflow.yaml").write_text(
        TEMPLATE + "  - {name: tell, handler: shop.tell, dependencies: [choose, ship]}\n"
    )
    file.write_text(text.replace("raise NotImplementedError", "return  # mine"))
    tasker("handlers", folder)
    assert file.read_text().startswith(text.replace("raise NotImplementedError", "return  # mine").rstrip())
    assert CliRunner().invoke(cli, ["template", "validate", str(folder)]).output == ""


def test_generated_scenarios_reach_the_whole_graph_and_pass(folder: Path) -> None:
    made = tasker("scenarios", folder)
    file = folder / "checkout.generated.scenario.yaml"
    assert made.output == f"{file}: coverage 100%\nwrote {file}\n"
    own = "\n- name: mine\n  expect: {status: complete}\n"
    file.write_text(file.read_text() + own)
    assert tasker("scenarios", folder, "--check").exit_code == 0
    cases = read_scenarios(file)
    assert cases[-1].name == "mine"
    for case in cases:
        assert case.differences(simulate(case.template, case.values, case.mocks)) == [], case.name


def test_scenarios_name_what_they_do_not_reach(folder: Path) -> None:
    (folder / "workflow.yaml").write_text(TEMPLATE.replace("input.?gift.orValue(false)", "input.amount == 77"))
    assert "coverage 100%" not in tasker("scenarios", folder).output
    assert "# not reached: wrap: `when` is true" in (folder / "checkout.generated.scenario.yaml").read_text()


def test_a_schema_is_made_of_what_a_function_returns(tmp_path: Path) -> None:
    code = (
        "from pydantic import BaseModel\nfrom tasker.step_handler import step_handler\n"
        "class Receipt(BaseModel):\n    nr: int\n"
        "@step_handler('pay')\ndef pay() -> Receipt: ...\n@step_handler('tell')\ndef tell(): ...\n"
    )
    (tmp_path / "handlers.py").write_text(code)
    printed = json.loads(tasker("schema", tmp_path / "handlers.py").output)
    assert {name: schema["required"] for name, schema in printed.items()} == {"pay": ["nr"]}
    (tmp_path / "bare.py").write_text(
        "from tasker.step_handler import step_handler\n@step_handler('x')\ndef x(): ...\n"
    )
    refused = tasker("schema", tmp_path / "bare.py")
    assert (refused.exit_code, "says what it returns" in refused.output) == (2, True)
