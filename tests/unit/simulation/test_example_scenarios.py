"""The scenarios of each example pass, cover its whole graph, and notice when a part of its template is taken away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tasker.errors import TaskerError
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.services.workflows.files import load_workflows
from tasker.services.workflows.handlers import Workflow, load_handlers
from tasker.simulation.coverage import Coverage
from tasker.simulation.outcome import SimulatedRun
from tasker.simulation.scenarios import Case, read_scenarios
from tasker.simulation.simulate import simulate
from tasker.template.compile import compile_text
from tasker.template.plan import Plan

WORKFLOWS = Path(__file__).parents[3] / "workflows"
EXAMPLES = sorted(path.parent.name for path in WORKFLOWS.glob("*/workflow.yaml"))
Document = dict[str, Any]


@cache
def cases_of(example: str) -> tuple[Case, ...]:
    files = sorted((WORKFLOWS / example).glob("*.scenario.yaml"))
    return tuple(case for file in files for case in read_scenarios(file))


def run_of(plans: Sequence[Plan], case: Case, handlers: HandlerRegistry | None) -> SimulatedRun:
    plan = next(plan for plan in plans if case.template_name in (None, plan.name))
    others = [other for other in plans if other is not plan]
    return simulate(plan, case.values, case.mocks, at=case.at, handlers=handlers, templates=others)


def differences(plans: Sequence[Plan], case: Case, handlers: HandlerRegistry | None) -> list[str]:
    try:
        return case.differences(run_of(plans, case, handlers))
    except TaskerError as error:
        return [error.message]


@cache
def workflows_of(example: str) -> tuple[Workflow, ...]:
    return tuple(load_workflows(WORKFLOWS / example))


@cache
def handlers_of(example: str) -> HandlerRegistry | None:
    if not any(case.real for case in cases_of(example)):
        return None
    return load_handlers([WORKFLOWS / example / "handlers.py"])  # for every template, also a changed one


@pytest.mark.parametrize("example", EXAMPLES)
def test_scenarios_of_an_example_pass_and_cover_its_graph(example: str) -> None:
    assert cases_of(example), f"workflows/{example} has no scenarios: see docs/testing-workflows.md"
    workflows = workflows_of(example)
    coverages = {each.plan.name: Coverage(each.plan, each.lines) for each in workflows}
    for case in cases_of(example):
        run = run_of([each.plan for each in workflows], case, handlers_of(example))
        assert case.differences(run) == [], case.name
        coverages[run.plan.name].shown |= run.covered()
    assert [item for coverage in coverages.values() for item in coverage.missing] == []


def mutants(document: Document) -> Iterator[tuple[str, Document]]:
    """Yield templates without one dependency, rule, branch of a rule, condition or word of `on_failure`."""
    for number, step in enumerate(document["steps"]):
        name = step["name"]
        for above in needed(document, step):
            yield (
                f"{name} without {above}",
                changed(document, number, "dependencies", without(step["dependencies"], above)),
            )
        for place, rule in enumerate(step.get("rules", ())):
            rest = [other for other in step["rules"] if other is not rule]
            if rest:
                yield f"{name} without rule {place + 1}", changed(document, number, "rules", rest)
            word = "then" if "then" in rule else "else"
            for branch in rule[word]:
                rules = deepcopy(step["rules"])
                rules[place][word] = without(rule[word], branch)
                yield f"rule {place + 1} of {name} without {branch}", changed(document, number, "rules", rules)
        for key in ("when", "on_failure"):
            if key in step:
                yield f"{name} without {key}", changed(document, number, key, None)


def needed(document: Document, step: Document) -> list[str]:
    """Return the dependencies of a step that no other one of them implies: without one of those nothing changes."""
    above = {other["name"]: other.get("dependencies", []) for other in document["steps"]}

    def reached(name: str) -> set[str]:
        return {name}.union(*map(reached, above.get(name, ())))

    names = step.get("dependencies", [])
    return [name for name in names if not any(name in reached(other) for other in names if other != name)]


def without(values: list[str], value: str) -> list[str]:
    return [other for other in values if other != value]


def changed(document: Document, number: int, key: str, value: Any) -> Document:
    copy = deepcopy(document)
    if value is None or value == []:
        copy["steps"][number].pop(key)
        if value == [] and key == "rules":
            copy["steps"][number][key] = value
    else:
        copy["steps"][number][key] = value
    return copy


@pytest.mark.parametrize("example", EXAMPLES)
def test_scenarios_of_an_example_notice_what_is_taken_away(example: str) -> None:
    text = (WORKFLOWS / example / "workflow.yaml").read_text()
    documents = list(yaml.load_all(text, Loader=yaml.CSafeLoader))
    handlers, survivors = handlers_of(example), []
    for number, document in enumerate(documents):
        for what, mutant in mutants(document):
            changed_documents = [*documents[:number], mutant, *documents[number + 1 :]]
            compiled = compile_text(yaml.dump_all(changed_documents, Dumper=yaml.CSafeDumper, sort_keys=False))
            noticed = not compiled.ok or any(differences(compiled.plans, case, handlers) for case in cases_of(example))
            survivors += [] if noticed else [what]
    assert survivors == []
