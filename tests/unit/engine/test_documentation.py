"""The generated parts of the documentation are what the tables say today."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tasker.engine.expansion.batches import parse_batches, worker_inputs
from tasker.engine.expansion.choices import parse_decision
from tasker.engine.states.diagrams import mermaid
from tasker.engine.states.step import STEP, TERMINAL, StepState
from tasker.handlers.registry.invocation import resolve_for
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.services.workflows.handlers import misfits
from tasker.template import compile_text
from tools.lifecycle_docs import DOCS, FILES, PARTS, current


@pytest.mark.parametrize("name", FILES)
def test_the_committed_text_is_current(name: str) -> None:
    text = (DOCS / name).read_text()
    assert current(text) == text, "run: python -m tools.lifecycle_docs"


def test_every_generated_part_is_in_a_document() -> None:
    text = "".join((DOCS / name).read_text() for name in FILES)
    assert set(re.findall(r"<!-- begin ([\w-]+) -->", text)) == set(PARTS)


def test_a_diagram_draws_every_transition_once_or_from_the_frame() -> None:
    diagram = mermaid(STEP, StepState.PENDING, TERMINAL)
    drawn = re.findall(r"^ +(\w+) --> (\w+) : (\w+)$", diagram, re.MULTILINE)
    framed = {event for source, _, event in drawn if source == "open"}
    assert framed == {"Cancel", "ResolveManually", "CompleteManually"}
    single = {(s, t, e) for s, t, e in drawn if s != "open"}
    assert single == {(s, t, e) for (s, e), t in STEP.table.items() if e not in framed}


def test_the_wire_forms_in_the_documents_are_read() -> None:
    text = (DOCS / "decisions-and-batches.md").read_text()
    blocks = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", text, re.DOTALL)]
    assert [parse_decision(block).step_names for block in blocks[:2]] == [("auto_approve",), ()]
    (cursor,) = parse_batches(blocks[2]).cursors
    inputs = worker_inputs(cursor, None)
    assert blocks[3] == inputs | {"batch_metadata": inputs["batch_metadata"] | {"cursor_field": "row_number"}}


def test_the_templates_and_the_handler_in_the_documents_work() -> None:
    text = (DOCS / "decisions-and-batches.md").read_text()
    templates = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    assert [compile_text(template).diagnostics for template in templates] == [(), ()]
    module: dict[str, Any] = {"__name__": "docs_snippet"}
    for handlers in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(handlers, module)
    assert callable(module["route"])
    assert module["finish"](manual=module["Approval"](approved=True)) == {"approved": True}
    batches = module["Batches"]({"process_001": module["Part"](total=2)}, {}, ["process_002"], False)
    assert module["aggregate"](batches) == {"total": 2, "complete": False}
    for template, names in zip(templates, (("route", "finish"), ("aggregate",)), strict=True):
        plan = compile_text(template).plans[0]
        steps = {step.handler.callable.removeprefix("docs."): step for step in plan.steps}
        registry = HandlerRegistry()
        for name in names:
            registry.register(f"docs.{name}", module[name])
            assert not list(misfits(plan, steps[name], resolve_for(steps[name], registry)))
