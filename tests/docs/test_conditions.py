"""The page on conditions: its template, its results, its messages."""

from __future__ import annotations

import json

import pytest

from tasker.expressions.mapping import MappingFailure
from tasker.handlers.evaluated_steps import evaluated_result
from tasker.handlers.step_inputs import scope_of
from tasker.template import compile_text
from tasker.template.condition_keys import FOR_EACH
from tasker.template.plan import Plan, StepPlan
from tasker.template.report import render_text
from tasker.template.rules.conditions import MOST_CONDITIONS
from tasker.views.explain_reasons import REASONS, filled
from tests.docs.snippets import snippets
from tests.support.repository import ROOT

PAGE = (ROOT / "docs" / "conditions.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return [snippet.text for snippet in snippets(PAGE) if snippet.language == language]


(TEMPLATE,) = blocks("yaml")
DECISION, COLLECTED = map(json.loads, blocks("json"))
EXPLAINED, MISTAKE, FAILURE = blocks("text")
VALUES = {"order_id": "o-1", "gift": True, "lines": [{"sku": "a", "price": 25.0}]}


def plan(text: str = TEMPLATE) -> Plan:
    compiled = compile_text(text)
    assert render_text(compiled.diagnostics, compiled.sources) == ""
    return compiled.plans[0]


def result(step: StepPlan) -> object:
    return evaluated_result(step, scope_of(plan(), "task", "id", 1, VALUES, {"quote": {"total": 25.0}}))


def test_result_of_a_condition_is_as_shown() -> None:
    assert result(plan().by_name["wrap.when"]) == DECISION


def test_example_of_a_test_passes() -> None:
    (example,) = blocks("python")
    exec(example, {"TEMPLATE": TEMPLATE})


def test_collected_results_fit_the_schema_of_the_step() -> None:
    schema = plan().by_name["reserve"].result_schema
    assert schema is not None
    fields = schema["properties"]["results"]["items"]["properties"]
    assert {key for one in COLLECTED for key in one} == set(fields)
    assert set(COLLECTED[1]["error"]) == set(fields["error"]["properties"])


def test_keys_of_a_list_are_all_listed_with_their_defaults() -> None:
    for key in FOR_EACH.keys:
        default = "required" if key.required else str(key.default) if key.name == "batch_size" else f"`{key.default}`"
        assert f"| `{key.name}` | {default} |" in PAGE
    assert f"At most {MOST_CONDITIONS} conditions" in PAGE


def test_message_of_a_mistake_is_what_the_compiler_says() -> None:
    text = TEMPLATE.replace("gift && steps.quote.total", "gift && steps.quote.totl")
    compiled = compile_text(text, file="workflow.yaml")
    assert render_text(compiled.diagnostics, compiled.sources).strip() == MISTAKE.strip()


def test_message_of_a_failure_is_what_the_worker_stores() -> None:
    text = TEMPLATE.replace("input.gift && steps.quote.total > 20.0", "input.lines[3].price > 0.0")
    with pytest.raises(MappingFailure) as failure:
        result(plan(text).by_name["wrap.when"])
    assert str(failure.value) == FAILURE.strip()


def test_explanation_is_that_of_the_reason() -> None:
    words = {"decision": "route", "branch": "manual_check"}
    decided = result(plan().by_name["route"])
    assert isinstance(decided, dict)
    words["why"] = decided["reason"]
    assert filled(REASONS["decided_against"].sentence, words) == EXPLAINED.strip()
