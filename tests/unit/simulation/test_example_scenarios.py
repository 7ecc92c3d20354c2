"""The scenarios of each example pass, cover its whole graph, and notice when a part of its template is taken away."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tasker.errors import TaskerError
from tasker.simulation.coverage import Coverage
from tasker.simulation.scenarios import Case, read_scenarios
from tasker.simulation.simulate import simulate, workflow_of
from tasker.template.compile import compile_text
from tasker.template.plan import Plan

WORKFLOWS = Path(__file__).parents[3] / "workflows"
EXAMPLES = sorted(path.parent.name for path in WORKFLOWS.glob("*/workflow.yaml"))
Document = dict[str, Any]


@cache
def cases_of(example: str) -> tuple[Case, ...]:
    files = sorted((WORKFLOWS / example).glob("*.scenario.yaml"))
    return tuple(case for file in files for case in read_scenarios(file))


def differences(plan: Plan, case: Case) -> list[str]:
    try:
        return case.differences(simulate(plan, case.values, case.mocks, at=case.at))
    except TaskerError as error:
        return [error.message]


@pytest.mark.parametrize("example", EXAMPLES)
def test_scenarios_of_an_example_pass_and_cover_its_graph(example: str) -> None:
    assert cases_of(example), f"workflows/{example} has no scenarios: see docs/testing-workflows.md"
    workflow = workflow_of(WORKFLOWS / example)
    coverage = Coverage(workflow.plan, workflow.lines)
    for case in cases_of(example):
        run = simulate(workflow.plan, case.values, case.mocks, at=case.at)
        assert case.differences(run) == [], case.name
        coverage.shown |= run.covered()
    assert coverage.missing == []


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
    document = yaml.safe_load((WORKFLOWS / example / "workflow.yaml").read_text())
    survivors = []
    for what, mutant in mutants(document):
        compiled = compile_text(yaml.safe_dump(mutant, sort_keys=False))
        if compiled.ok and not any(differences(compiled.plans[0], case) for case in cases_of(example)):
            survivors.append(what)
    assert survivors == []
