"""What handlers read is compared with the schemas of the results and inputs that they read it from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tasker.services.workflows.contracts import ContractCount
from tasker.services.workflows.files import check_handlers, load_path
from tasker.template.diagnostics import Diagnostic
from tests.support.command_line import invoke

TEMPLATE = """
name: checkout
namespace_name: shop
version: 1.0.0
input_schema:
  type: object
  required: [id]
  properties: {id: {type: string}, tier: {enum: [standard, gold, trial]}, note: {type: string}}
steps:
  - name: quote
    handler: quote
    result_schema: {type: object, required: [amount], properties: {amount: {type: number}, code: {type: string}}}
  - name: charge
    handler: charge
    dependencies: [quote]
"""
HEAD = """
from typing import Literal
from typing_extensions import TypedDict
from pydantic import BaseModel, ConfigDict, Field
from tasker.step_handler import depends_on, inputs, step_handler

@step_handler("quote")
def quote(): return {"amount": 1}

"""
READS = """
@step_handler("charge")
@depends_on(quote=("quote", Quote))
def charge(quote): ...
"""
INPUT = """
@step_handler("charge")
@inputs(Order)
def charge(inputs): ...
"""


def checked(folder: Path, handlers: str, template: str = TEMPLATE) -> tuple[list[Diagnostic], ContractCount]:
    (folder / "workflow.yaml").write_text(template)
    (folder / "handlers.py").write_text(HEAD + handlers)
    count = ContractCount()
    return check_handlers(load_path(folder), folder, [], contracts=count), count


def model(fields: str, name: str = "Quote") -> str:
    return f"class {name}(BaseModel):\n    " + fields.replace("; ", "\n    ") + "\n"


FITTING = [
    model("amount: float") + READS,
    model("amount: int") + READS,  # a model reads an integer from 5.0
    model("amount: float; code: str | None = None") + READS,
    model("amount: float; other: str = 'x'") + READS,
    "class Quote(TypedDict):\n    amount: float\n" + READS,
    model("id: str; tier: Literal['standard', 'gold', 'trial'] = 'gold'", "Order") + INPUT,
    "@step_handler('charge')\n@inputs('id', 'note')\ndef charge(id: str, note: str | None): ...\n",
    "@step_handler('charge')\n@inputs('id', 'note')\ndef charge(id, note: str = ''): ...\n",
]
BREAKING = [
    (model("amount: float; currency: str") + READS, "T230", "$.currency is absent, expected a value"),
    (model("amount: float; code: str") + READS, "T230", "$.code may be absent, expected a value"),
    (model("amount: str") + READS, "T230", "$.amount is a number, expected string"),
    (model("model_config = ConfigDict(extra='forbid'); amount: float") + READS, "T230", "$.code is refused"),
    (model("id: str; tier: Literal['standard', 'gold'] = 'gold'", "Order") + INPUT, "T231", '$.tier may be "trial"'),
    (model("id: str; note: str", "Order") + INPUT, "T231", "$.note may be absent, expected a value"),
    (
        "@step_handler('charge')\n@inputs('id')\ndef charge(id: int): ...\n",
        "T232",
        "$.id is a string, expected integer",
    ),
    ("@step_handler('charge')\n@inputs('note')\ndef charge(note: str): ...\n", "T232", "$.note may be absent"),
]


@pytest.mark.parametrize("handlers", FITTING)
def test_a_contract_that_holds_is_compared(handlers: str, tmp_path: Path) -> None:
    found, count = checked(tmp_path, handlers)
    assert (found, count.compared) == ([], 1)


@pytest.mark.parametrize(("handlers", "code", "message"), BREAKING)
def test_a_broken_contract_is_found_at_its_step(handlers: str, code: str, message: str, tmp_path: Path) -> None:
    (found,), _ = checked(tmp_path, handlers)
    assert (found.code, found.line, found.severity) == (code, 14, "warning" if code == "T232" else "error")
    assert message in found.message
    assert f"{tmp_path}/workflow.yaml:{12 if code == 'T230' else 5})" in found.message


@pytest.mark.parametrize(
    ("handlers", "reason"),
    [
        (model("amount: int") + READS, "$.amount is a number, expected integer"),
        (model("amount: float = Field(gt=0)") + READS, "$.amount may be beyond the exclusiveMinimum 0"),
        (model("code: str = Field('x', pattern='^x')") + READS, "expected the pattern `^x`"),
    ],
)
def test_what_cannot_be_decided_is_counted(handlers: str, reason: str, tmp_path: Path) -> None:
    found, count = checked(tmp_path, handlers)
    assert (found, len(count.undecided)) == ([], 1)
    assert reason in count.undecided[0]


def test_a_step_without_a_schema_decides_nothing(tmp_path: Path) -> None:
    template = "\n".join(line for line in TEMPLATE.splitlines() if "result_schema" not in line)
    found, count = checked(tmp_path, model("amount: str") + READS, template)
    assert (found, count.undecided[0].endswith("there is no schema above it")) == ([], True)


def test_a_field_with_an_alias_is_read_by_both_names_where_the_model_says_so(tmp_path: Path) -> None:
    fields = "model_config = ConfigDict(populate_by_name=True); amount: float = Field(alias='sum')"
    assert checked(tmp_path, model(fields) + READS)[0] == []


def test_the_command_counts_contracts(tmp_path: Path) -> None:
    checked(tmp_path, model("amount: int") + READS)
    answer = invoke("template", "check-contracts", tmp_path)
    assert answer.exit_code == 0
    assert answer.stdout.startswith("1 contract compared, 1 cannot be decided\n  charge: `quote` of charge (")
    checked(tmp_path, model("amount: list[str]") + READS)  # another size: Python compares no more than that in a second
    answer = invoke("template", "check-contracts", tmp_path, "--format", "json")
    report = json.loads(answer.stdout)
    assert (answer.exit_code, report["compared"], report["undecided"]) == (1, 1, [])
    assert [found["code"] for found in report["diagnostics"]] == ["T230"]
    assert "error[T230]" in invoke("template", "validate", tmp_path).stdout
