"""Every diagnostic appears where it should, and stays away where it should."""

from __future__ import annotations

from tasker.template.compile import compile_text
from tasker.template.diagnostics import CODES, WARNINGS
from tests.support.tables import for_each
from tests.unit.template import cases
from tests.unit.template.cases import Case
from tests.unit.template.cases_of_children import CHILDREN
from tests.unit.template.cases_of_conditions import CONDITIONS
from tests.unit.template.cases_of_effects import EFFECTS
from tests.unit.template.cases_of_failures import FAILURES
from tests.unit.template.cases_of_repeats import REPEATS
from tests.unit.template.cases_of_waits import WAITS
from tests.unit.template.support import marked, place

CASES = (*cases.CASES, *CHILDREN, *EFFECTS, *CONDITIONS, *WAITS, *FAILURES, *REPEATS)
FOUND_ELSEWHERE = {"T012", "T035", "T037", "T075", "T077", "T078", "T086", "T126", "T230", "T231", "T232"}
"""Codes of files, handlers and plugins, which need more than a text."""


@for_each(CASES)
def test_the_problem_is_reported_at_its_place(case: Case) -> None:
    text, expected = marked(case.bad)
    found = [d for d in compile_text(text).diagnostics if d.code == case.code]
    assert [place(d) for d in found] == [expected]
    assert case.says in f"{found[0].message} {found[0].hint}"


@for_each(CASES)
def test_nothing_but_the_problem_is_reported(case: Case) -> None:
    result = compile_text(marked(case.bad)[0])
    assert {d.code for d in result.errors or result.diagnostics} == {case.code}
    assert result.ok == (case.code in WARNINGS)
    assert bool(result.plans) == (case.code in WARNINGS or case.code == "T031")


@for_each(CASES)
def test_what_comes_near_is_not_reported(case: Case) -> None:
    result = compile_text(case.good)
    assert case.code not in {d.code for d in result.diagnostics}
    assert result.ok, result.errors


def test_every_code_has_a_case() -> None:
    assert {case.code for case in CASES} | FOUND_ELSEWHERE == set(CODES)


def test_a_step_written_into_finally_is_a_mistake_with_a_place() -> None:
    text = "name: a\nnamespace: b\nversion: 1\nsteps:\n  - {name: x, handler: h}\nfinally: [{name: last, handler: h}]\n"

    (problem,) = compile_text(text).errors

    assert (problem.code, problem.message) == ("T022", "expected text, found a mapping")
