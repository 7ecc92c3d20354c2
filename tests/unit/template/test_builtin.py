"""Inputs of built-in steps are checked with the template: names, types, literals, and what other steps read of them."""

from __future__ import annotations

import pytest

from tasker.template import compile_text
from tasker.template.diagnostics import Diagnostic

HEAD = """\
name: order
namespace: shop
version: 1.0.0
input_schema:
  type: object
  required: [id, amount, lines]
  properties:
    id: {type: string}
    amount: {type: number}
    lines: {type: array, items: {type: object, required: [price], properties: {price: {type: number}}}}
steps:
"""


def diagnostics(steps: str) -> tuple[Diagnostic, ...]:
    return compile_text(HEAD + steps).diagnostics


def place(text: str, found: Diagnostic) -> str:
    line = (HEAD + text).splitlines()[found.line - 1]
    return line[found.column - 1 : found.column - 1 + found.length]


def one(step: str) -> str:
    return f"  - {{name: a, {step}}}\n"


MISTAKES = [
    (
        "handler: tasker.log, inputs: {message: hi, «levl»: info}",
        "T100",
        "did you mean `level`?",
    ),
    ("handler: tasker.collect, «inputs»: {a: 1}", "T100", "remove `inputs`"),
    ("handler: tasker.log, «inputs»: {level: info}", "T101", "add `message`"),
    ("handler: «tasker.transform»", "T101", "write `inputs`"),
    ("handler: «tasker.log»", "T101", "write `inputs`"),
    ("handler: tasker.transform, inputs: «{}»", "T102", None),
    ("handler: tasker.log, inputs: {message: hi, level: «loud»}", "T102", None),
    ("handler: tasker.log, inputs: {message: «7»}", "T102", None),
    ('handler: tasker.log, inputs: {message: «"${input.amount}"»}', "T102", "write string(...)"),
    ('handler: tasker.fail, inputs: {message: no, retryable: «"${input.lines}"»}', "T102", None),
    ('handler: tasker.log, inputs: {message: hi, fields: «"${input.id}"»}', "T102", None),
    ('handler: tasker.validate, inputs: {value: 1, schema: «"${input.id}"»}', "T103", "write the value"),
    ("handler: tasker.validate, inputs: {value: 1, schema: {type: «strng»}}", "T028", None),
    ("handler: {callable: tasker.log, initialization: «{a: 1}»}, inputs: {message: hi}", "T104", "`inputs`"),
    ("handler: {callable: tasker.log, method: «other»}, inputs: {message: hi}", "T104", None),
    ("type: «decision», handler: tasker.log, inputs: {message: hi}", "T104", None),
    (
        "handler: tasker.transform, inputs: {x: 1}, result_schema: «{type: object, required: [y]}»",
        "T105",
        None,
    ),
    (
        "handler: tasker.transform, inputs: {x: 1}, result_schema: «{properties: {x: {type: string}}}»",
        "T105",
        None,
    ),
]


@pytest.mark.parametrize(("step", "code", "hint"), MISTAKES, ids=[f"{case[1]} {case[0]}" for case in MISTAKES])
def test_a_mistake_is_reported_where_it_is(step: str, code: str, hint: str | None) -> None:
    before, _, rest = step.partition("«")
    marked, _, after = rest.partition("»")
    found = [problem for problem in diagnostics(one(before + marked + after)) if problem.code == code]
    assert found, diagnostics(one(before + marked + after))
    assert place(one(before + marked + after), found[0]) == marked
    assert hint is None or hint in (found[0].hint or "")


CORRECT = [
    'handler: tasker.transform, inputs: {total: "${input.lines.map(l, l.price).sum()}", note: "for ${input.id}"}',
    'handler: tasker.log, inputs: {message: hi, level: warning, fields: {a: 1, b: "${input.lines}"}}',
    'handler: tasker.validate, inputs: {value: "${input.lines}", schema: {type: array}, on_invalid: report}',
    'handler: tasker.fail, inputs: {message: "no ${input.id}", code: "E-${input.amount}", retryable: true}',
    "handler: tasker.collect",
    "handler: tasker.transform, inputs: {x: 1}, result_schema: {required: [x], properties: {x: {type: integer}}}",
]


@pytest.mark.parametrize("step", CORRECT)
def test_a_correct_step_has_no_problem(step: str) -> None:
    assert diagnostics(one(step)) == ()


READ = """\
  - {name: total, handler: tasker.transform, inputs: {sum: "${input.amount * 2}", lines: "${input.lines}", of: shop}}
  - {name: check, handler: tasker.validate, inputs: {value: 1, schema: {}}, dependencies: [total]}
  - {name: both, handler: tasker.collect, dependencies: [total, check]}
  - {name: last, handler: h, dependencies: [both], inputs: {x: "${EXPRESSION}"}}
"""


@pytest.mark.parametrize(
    ("expression", "codes"),
    [
        ("steps.total.sum + 1", []),
        ("steps.total.lines[0].price", []),
        ("steps.total.summ", ["T091"]),
        ("steps.total.of + 1", ["T092"]),
        ("steps.total.lines[0].prise", ["T091"]),
        ("steps.check.valid ? 1 : 2", []),
        ("steps.check.problems[0].mesage", ["T091"]),
        ("steps.both.total.sum + 1", []),
        ("steps.both.totl", ["T091"]),
    ],
)
def test_expressions_know_the_results_of_builtin_steps(expression: str, codes: list[str]) -> None:
    assert [problem.code for problem in diagnostics(READ.replace("EXPRESSION", expression))] == codes


def test_a_branch_that_a_collect_may_lack_is_optional() -> None:
    steps = """\
  - {name: route, type: decision, handler: h}
  - {name: left, handler: tasker.transform, inputs: {x: 1}, dependencies: [route]}
  - {name: right, handler: tasker.transform, inputs: {x: 2}, dependencies: [route]}
  - {name: join, type: deferred_convergence, handler: tasker.collect, dependencies: [route, left, right]}
  - {name: last, handler: h, dependencies: [join], inputs: {x: "${EXPRESSION}"}}
"""
    known = diagnostics(steps.replace("EXPRESSION", "steps.join.?left.?x.orValue(0) + 1"))
    assert [problem.code for problem in known] == []
    assert [p.code for p in diagnostics(steps.replace("EXPRESSION", "steps.join.left.x"))] == ["T093"]
