"""The profile against Google's implementation of CEL: what both evaluate has the same value and type."""

from __future__ import annotations

import math
import os
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings

from tasker.expressions.evaluation import Expression
from tasker.expressions.syntax import ExpressionError
from tasker.expressions.values import EvaluationError
from tests.support.random_expressions import DATA, expressions

cel = pytest.importorskip("cel_expr_python.cel", reason="wheels exist for Linux and macOS only")

EXAMPLES = int(os.environ.get("TASKER_DIFFERENTIAL_EXAMPLES", "500"))
ENVIRONMENT = cel.NewEnv(variables={"input": cel.Type.DYN, "steps": cel.Type.DYN})
REFUSALS = ("UNKNOWN", "NOT_FOUND", "INVALID_ARGUMENT", "OUT_OF_RANGE", "ALREADY_EXISTS", "INTERNAL")


class Refused(Exception):
    """Text or evaluation without a value."""


def of_google(text: str) -> Any:
    try:
        value = ENVIRONMENT.compile(text).eval(data=DATA).plain_value()
    except Exception as error:
        raise Refused(str(error)) from None
    if isinstance(value, str) and value.split(":")[0] in REFUSALS:
        raise Refused(value)
    return value


def of_the_profile(text: str) -> Any:
    try:
        return Expression(text).evaluate(DATA)
    except (ExpressionError, EvaluationError) as error:
        raise Refused(str(error)) from None


def both(text: str) -> tuple[Any, Any]:
    answers: list[Any] = []
    for ask in (of_google, of_the_profile):
        try:
            answers.append(("value", ask(text)))
        except Refused as error:
            answers.append(("refused", str(error)))
    return answers[0], answers[1]


def same(theirs: Any, ours: Any) -> bool:
    if isinstance(theirs, list) and isinstance(ours, list):
        return len(theirs) == len(ours) and all(map(same, theirs, ours))
    if isinstance(theirs, dict) and isinstance(ours, dict):
        return theirs.keys() == ours.keys() and all(same(theirs[key], ours[key]) for key in theirs)
    if isinstance(theirs, str) and isinstance(ours, str) and theirs != ours:
        return is_number(theirs) and is_number(ours) and float(theirs) == float(ours)  # string(double), deviation 2
    return type(theirs) is type(ours) and theirs == ours


def is_storable(value: Any) -> bool:
    """Whether JSON can hold the value and all in it."""
    if isinstance(value, list):
        return all(map(is_storable, value))
    if isinstance(value, dict):
        return all(map(is_storable, value.values()))
    return not isinstance(value, float) or math.isfinite(value)


def is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


@example("[2.5 / 0.0, 'gold']")
@given(expressions())
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
def test_what_google_evaluates_evaluates_the_same(text: str) -> None:
    (answered, theirs), (outcome, ours) = both(text)
    if answered == "refused":
        return  # the profile accepts more where numbers mix
    if not is_storable(theirs):
        assert outcome == "refused", text  # JSON cannot hold it
    else:
        assert outcome == "value", (text, theirs, ours)
        assert same(theirs, ours), (text, theirs, ours)


@pytest.mark.parametrize(
    "text",
    [
        "input.m", "input.xs[4]", "input.xs[-1]", "input.n.x", "input.a.b", "1 / 0", "5 % 0", "!1",
        "has(input.n.x)", "-'a'", "steps.one.big + 1", "int('1.5')", "int(1e30)", "double('x')", "bool('x')",
        "string(null)", "string([1])", "'a' < 1", "[1, 2].all(x, x)", "{'a': 1, 'a': 2}", "1 ? 2 : 3", "true && 1",
        "'a' + 1", "nothing", "input.xs.map(1, 2)",
        "1 in 'a'", "f(1)", "'a'.f()", "'\\q'", "a b", "", "1.", "'a' 'b'", "input.", "(1", "[1, 2",
        "[0, 1].all(x, 1 / x == 1)",
    ],
)  # fmt: skip
def test_both_refuse(text: str) -> None:
    with pytest.raises(Refused):
        of_google(text)
    with pytest.raises(Refused):
        of_the_profile(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("-7 / 2", -3), ("-7 % 2", -1), ("-9223372036854775808", -(2**63)), ("'é😀'.size()", 2), ("input.xs[1.0]", 2),
        ("input.m.a == 1 || true", True), ("[0, 1].exists(x, 1 / x == 1)", True), ("1 //c", 1), ("[1, 2,]", [1, 2]),
        ("{'a': 1,}", {"a": 1}), ("r'\\n'", "\\n"), ("'\\x41\\101'", "AA"), ("true < false", False),
        ("input.n == 1", False),
        ("[1, 2].map(x, x > 1, x * 2)", [4]), ("int(-2.9)", -2), ("string(1.0)", "1"),
        ("{'a': 1, 'b': 2}.exists(k, k == 'a')", True),
        ("double(steps.one.big) in [steps.one.big]", True), ("steps.one.big < double(steps.one.big)", False),
        ("has(input.n)", True), (".5 + .5", 1.0), ("dyn(1) == 1", True), ("bool('true')", True), ("!!input.t", True),
    ],
)  # fmt: skip
def test_both_give_the_value(text: str, value: Any) -> None:
    assert same(of_google(text), value)
    assert same(of_the_profile(text), value)


ONLY_HERE: list[tuple[str, Any]] = [
    ("input.a * 1.5", 4.5),
    ("1 + 2.0", 3.0),
    ("1 == 'a'", False),
    ("input.?zz.?y.orValue(2)", 2),
    ("input.?o.k.orValue('x')", "v"),
    ("input.?n.?y.orValue(2)", 2),
    ("' aB '.trim().lowerAscii()", "ab"),
    ("'a,b'.split(',').join('-')", "a-b"),
    ("'abc'.replace('b', 'x').upperAscii()", "AXC"),
    ("input.items.map(i, i.q * i.p).sum()", 4.0),
    ("[3, 1, 2].sort() + [[1, 1.0, 2].distinct().size()]", [1, 2, 3, 2]),
    ("[input.xs.min(), input.xs.max(), input.xs.indexOf(3), input.xs.indexOf(9)]", [1, 3, 2, -1]),
]


@pytest.mark.parametrize(("text", "value"), ONLY_HERE)
def test_profile_adds(text: str, value: Any) -> None:
    assert same(value, of_the_profile(text))
