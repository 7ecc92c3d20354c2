"""Mistakes in expressions are reported with code, place and hint, in every style of YAML."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tasker.template import compile_text
from tasker.template.diagnostics import Diagnostic, Position
from tasker.template.normalized import normalized_yaml
from tasker.template.yaml.nodes import LINE_BREAK
from tasker.template.yaml.positions import position_inside

TEMPLATE = """\
name: shop
namespace: demo
version: 1.0.0
input_schema:
  type: object
  required: [id, tier, lines, maybe]
  properties:
    id: {type: string}
    tier: {enum: [standard, gold]}
    coupon: {type: string}
    maybe: {type: [string, "null"]}
    lines: {type: array, items: {type: object, required: [price], properties: {price: {type: number}, sku: {}}}}
    open: {type: object, additionalProperties: true}
steps:
  - {name: quote, handler: h, result_schema: {type: object, required: [total], properties: {total: {type: integer}}}}
  - {name: route, type: decision, handler: h, dependencies: [quote]}
  - {name: manual, handler: h, dependencies: [route]}
  - {name: sequel, handler: h, dependencies: [route, manual], inputs: {x: "${steps.manual.anything}"}}
  - {name: join, type: deferred_convergence, handler: h, dependencies: [route, manual, sequel], inputs: {x: "${JOIN}"}}
  - {name: later, handler: h, dependencies: [join], inputs: {x: "${steps.join.x + steps.quote.total}"}}
  - name: charge
    handler: h
    dependencies: [quote]
    inputs:
      x: EXPRESSION
"""


def diagnostics(expression: str = "1", join: str = "1") -> tuple[Diagnostic, ...]:
    return compile_text(TEMPLATE.replace("EXPRESSION", expression).replace("JOIN", join)).diagnostics


MISTAKES = [
    ("input.idd", "T091", "idd", "did you mean `id`?"),
    ("input.lines[0].prise", "T091", "prise", "did you mean `price`?"),
    ("imput.id", "T091", "imput", "did you mean `input`?"),
    ("steps.qoute.total", "T091", "qoute", "did you mean `quote`?"),
    ("steps['qoute'].total", "T091", "'qoute'", "did you mean `quote`?"),
    ("input.id.startWith('a')", "T091", "startWith", "did you mean `startsWith`?"),
    ("lenght(input.id)", "T091", "lenght", None),
    ("input.lines.map(steps, 1)", "T091", "steps", "choose another name"),
    ("env.HOME", "T091", "env", None),
    ("steps", "T091", "steps", "write steps.NAME"),
    ("steps.quote.total + 'x'", "T092", "+", "write string(...) around the other value"),
    ("input.id > 1", "T092", ">", None),
    ("input.tier == 'gould'", "T092", "==", "did you mean `gold`?"),
    ("1 == 'a'", "T092", "==", None),
    ("input.lines.price", "T092", "price", "write input.lines[0].price, or input.lines.map(item, item.price)"),
    ("steps.quote.total ? 1 : 2", "T092", "total", None),
    ("!input.id", "T092", "id", None),
    ("input.id && true", "T092", "id", None),
    ("input.lines.filter(l, l.price)", "T092", "price", None),
    ("input.id.sum()", "T092", "sum", None),
    ("size(1)", "T092", "1", None),
    ("has(input)", "T092", "has", "for example has(input.coupon)"),
    ("input.coupon", "T093", "coupon", "write has(input.coupon) && ..., or .?coupon.orValue(...)"),
    ("input.lines.map(l, l.sku)", "T093", "sku", None),
    ("input.open.x", "T093", "open", None),
    ("has(input.coupon) ? 'x' : input.coupon", "T093", "coupon", None),
    ("steps.charge.x", "T094", "charge", "a step cannot read its own result"),
    ("steps.manual.x", "T094", "manual", "add `manual` to the dependencies of `charge`"),
    ("1 +", "T090", "", None),
    ("a b", "T090", "b", None),
    ("input.id = 1", "T090", "=", "write `==`"),
    ("input.id and true", "T090", "and", "write `&&`"),
    ("'x", "T090", "", None),
    ("input.?coupon", "T090", "coupon", "end with .orValue(...), which says what to use instead"),
]


@pytest.mark.parametrize(("expression", "code", "marked", "hint"), MISTAKES)
def test_mistake_is_reported_at_its_place(expression: str, code: str, marked: str, hint: str | None) -> None:
    written = f'"${{{expression}}}"'
    problem, *_ = diagnostics(written)
    line = LINE_BREAK.split(TEMPLATE.replace("EXPRESSION", written))[problem.line - 1]
    assert problem.code == code
    assert written in line
    if marked:
        assert line[problem.column - 1 :].startswith(marked)
        assert problem.length == len(marked)
    if hint is not None:
        assert hint in (problem.hint, problem.message)


CORRECT = [
    "input.maybe",
    "input.maybe != null ? input.maybe.size() : 0",
    "has(input.coupon) && input.coupon == 'x'",
    "!has(input.coupon) || input.coupon.size() > 2",
    "has(input.coupon) ? input.coupon : 'none'",
    "input.?coupon.orValue('none')",
    "has(input.open) && input.open.anything.at.all > 1",
    "input.lines.map(line, line.price).sum() + steps.quote.total",
    "input.lines.exists(line, has(line.sku) && line.sku == 1)",
    "input.tier == 'gold'",
    "task.id + task.correlation_id + string(attempt)",
    "{'a': input.id}.a",
]


@pytest.mark.parametrize("expression", CORRECT)
def test_correct_expression_has_no_problem(expression: str) -> None:
    assert diagnostics(f'"${{{expression}}}"') == ()


def test_branch_that_may_not_exist_is_read_with_has_behind_a_convergence() -> None:
    (problem,) = diagnostics(join="steps.manual.x")
    assert (problem.code, problem.hint) == (
        "T095",
        "write has(steps.manual) ? ... : ..., or steps.?manual.orValue(...)",
    )
    for allowed in ("has(steps.manual) ? steps.manual.x : 1", "steps.?manual.x.orValue(1)", "steps.quote.total"):
        assert diagnostics(join=allowed) == ()


def test_text_takes_scalars_only_and_dollars_can_be_written() -> None:
    (problem,) = diagnostics('"lines: ${input.lines}"')
    assert (problem.code, problem.message) == ("T092", "inside a text an expression is a scalar, got list of object")
    assert diagnostics("'$${input.lines} ${input.id}$ {x} ${\"}\"}'") == ()


def test_unclosed_expression_names_the_comment_as_its_possible_reason() -> None:
    (problem,) = diagnostics("${input.id # the id")
    assert (problem.code, problem.column) == ("T090", 10)
    assert "` #` begins a comment" in str(problem.hint)


STRICT = """\
name: shop
namespace: demo
version: 1.0.0
input_schema:
  type: object
  required: [id]
  properties: {id: {type: string}, spare: {}, key: {type: string}}
steps:
  - {name: open, handler: h, inputs: {x: "${input.id}"}}
  - name: quote
    handler: h
    dependencies: [open]
    inputs: {x: "${steps.open.a.b}", y: "${steps.open.a.c}"}
    concurrency: {key: input.key, limit: 1}
    result_schema: {type: object, required: [total], properties: {total: {type: integer}, note: {}}}
  - {name: pay, handler: h, dependencies: [quote], when: steps.quote.total > 0, inputs: {x: 1}}
"""


def test_strict_check_names_what_is_not_described_and_what_nothing_reads() -> None:
    problems = [(d.code, d.message, d.line) for d in compile_text(STRICT, strict=True).diagnostics]
    assert problems == [
        ("T078", "nothing reads `input.spare`", 7),
        ("T077", "no schema describes `steps.open`", 13),
        ("T077", "no schema describes `steps.open`", 13),
        ("T078", "nothing reads `note` of the result of `quote`", 15),
    ]
    assert compile_text(STRICT).diagnostics == ()


def test_strict_check_says_nothing_of_values_that_a_handler_may_read() -> None:
    text = STRICT.replace(", inputs: {x: 1}", "")
    codes = [d.code for d in compile_text(text, strict=True).diagnostics]
    assert codes == ["T077", "T077"]


TRAPS = [
    ("${input.id ? 'b' : 'c'}", "\"${input.id ? 'b' : 'c'}\""),
    ("{y: ${input.id}}", '{y: "${input.id}"}'),
    ("[${input.id}, 1]", '["${input.id}", 1]'),
    ("${ {'a': 1}.a }", "\"${ {'a': 1}.a }\""),
    ('${ {"a": 1}.a }', "'${ {\"a\": 1}.a }'"),
    ("{y: 1, z: ${has(input.id) ? 1 : 2}}", '{y: 1, z: "${has(input.id) ? 1 : 2}"}'),
]


@pytest.mark.parametrize(("written", "quoted"), TRAPS)
def test_expression_that_yaml_reads_otherwise_is_answered_with_the_quoted_line(written: str, quoted: str) -> None:
    problem, *others = diagnostics(written)
    assert (problem.code, problem.hint) == ("T090", f"write x: {quoted}")
    assert others == []
    assert [problem.code for problem in diagnostics(quoted) if problem.code == "T090"] == []


def test_problem_behind_a_repaired_line_is_reported_too() -> None:
    text = TEMPLATE.replace("EXPRESSION", "${input.id ? 'b' : 'c'}\n      z: ${1 +}").replace("JOIN", "1")
    assert [problem.code for problem in compile_text(text).diagnostics] == ["T090", "T090"]


def test_inputs_survive_the_way_back_to_a_template() -> None:
    text = TEMPLATE.replace("EXPRESSION", '"a ${input.id}"').replace("JOIN", "1")
    (plan,) = compile_text(text).plans
    assert plan.by_name["charge"].inputs == {"x": "a ${input.id}"}
    (again,) = compile_text(normalized_yaml(plan)).plans
    assert again.hash == plan.hash
    (other,) = compile_text(text.replace("a ${", "b ${")).plans
    assert other.id != plan.id


VALUE = st.text(st.sampled_from(list("ab$ {}'\"\\\n:#-é😀\t")), min_size=1, max_size=40)


@given(VALUE, st.sampled_from(["'", '"', "|", ">", None]), st.booleans())
def test_every_character_is_found_in_the_source(value: str, style: str | None, crlf: bool) -> None:
    """Read side by side, a position points to the same character, or to an escape."""
    text = yaml.dump({"key": value}, default_style=style, width=20, allow_unicode=True)
    text = text.replace("\n", "\r\n") if crlf else text
    if yaml.safe_load(text.replace("\r\n", "\n")) not in ({"key": value},):
        return
    root = yaml.compose(text)
    mark = root.value[0][1].start_mark
    lines = LINE_BREAK.split(text)
    for offset, character in enumerate(value):
        if character.isspace():
            continue
        place = position_inside(text, Position(mark.line + 1, mark.column + 1), value, offset, 1)
        found = lines[place.line - 1][place.column - 1]
        assert found in (character, "\\"), (text, offset, place)


PROGRAM = """
import sys, json
from tasker.template import compile_text
before = set(sys.modules)
compile_text(sys.stdin.read()).plans[0]
print(json.dumps(sorted(m for m in set(sys.modules) - before if "lark" in m or m.startswith("tasker.expressions"))))
"""


@pytest.mark.parametrize(("inputs", "loaded"), [("", False), ("    inputs: {x: '${input.id}'}\n", True)])
def test_only_templates_with_expressions_load_their_modules(inputs: str, loaded: bool) -> None:
    text = f"name: a\nnamespace: b\nversion: 1.0.0\nsteps:\n  - name: s\n    handler: h\n{inputs}"
    done = subprocess.run([sys.executable, "-c", PROGRAM], input=text, capture_output=True, text=True, check=True)
    assert bool(json.loads(done.stdout)) is loaded


CONDITIONS_OF_YAML = [
    ("when: 'x' == input.id", "when: \"'x' == input.id\"", "T090"),
    ('when: "x" == input.id', "when: '\"x\" == input.id'", "T090"),
    ("when: has(input.coupon) ? true : false", 'when: "has(input.coupon) ? true : false"', "T090"),
    ("when: input.id == 'a: b'", "when: \"input.id == 'a: b'\"", "T090"),
    ("when: ['a'].exists(x, x == input.id)", "when: \"['a'].exists(x, x == input.id)\"", "T090"),
    ("when: {'a': true}.a", "when: \"{'a': true}.a\"", "T090"),
    ("when: !has(input.coupon)", '"!has(input.coupon)"', "T008"),
    ("for_each: ['a', 'b'].map(x, x)", "for_each: \"['a', 'b'].map(x, x)\"", "T090"),
    ("for_each: [input.id] + ['b']", "for_each: \"[input.id] + ['b']\"", "T090"),
]


@pytest.mark.parametrize(("written", "quoted", "code"), CONDITIONS_OF_YAML)
def test_condition_that_yaml_reads_otherwise_is_answered_with_quotes(written: str, quoted: str, code: str) -> None:
    head = TEMPLATE.partition("      x: EXPRESSION")[0].replace("JOIN", "1").rpartition("    inputs:")[0]
    problem, *others = compile_text(f"{head}    {written}\n").diagnostics
    assert (problem.code, problem.column, others) == (code, len(written.partition(": ")[0]) + 7, [])
    assert str(problem.hint).endswith(quoted)
    key = written.partition(":")[0]
    corrected = quoted if quoted.startswith(key) else f"{key}: {quoted}"
    assert {each.code for each in compile_text(f"{head}    {corrected}\n").diagnostics} <= {"T079"}


STYLES = [
    ("x: '${input.idd}'", "idd"),
    ("x: ['a', {y: '${input.idd}'}]", "idd"),
    ("x: 'é😀 ${input.id} ${input.idd}'", "idd"),
    ('x: "\\u00e9\\t ${input.idd}"', "idd"),
    ("x: >-\n        some words\n        ${input.idd} and more", "idd"),
    ("x: |\n        some words\n\n        ${input.idd}\n", "idd"),
    ("x: 'it''s ${input.idd}'", "idd"),
    ('x: "a\n        b ${input.idd}"', "idd"),
    ("x: &text '${input.idd}'\n      y: *text", "idd"),
    ("x: '$${input.idd} ${input.idd}'", "idd"),
]


@pytest.mark.parametrize(("written", "marked"), STYLES)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_mistake_has_its_place_in_every_style_of_yaml(written: str, marked: str, end: str) -> None:
    text = TEMPLATE.replace("x: EXPRESSION", written).replace("JOIN", "1").replace("\n", end)
    problem, *others = compile_text(text).diagnostics
    offset = text.rindex(marked)
    assert (problem.code, problem.length) == ("T091", len(marked))
    assert problem.line == text.count("\n", 0, offset) + 1
    assert problem.column == offset - text.rindex("\n", 0, offset)
    assert {(each.line, each.column) for each in others} <= {(problem.line, problem.column)}
