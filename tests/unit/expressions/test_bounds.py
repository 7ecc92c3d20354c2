"""Every text is parsed or refused with a place, every evaluation ends: whatever the text, whatever the data."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasker.expressions.evaluation import Expression
from tasker.expressions.syntax import MAX_TEXT, ExpressionError, Problem, parse
from tasker.expressions.values import BUDGET, Budget, EvaluationError

WORDS = [
    *"()[]{}.,:?!-+*/%<>=&|\"'\\ \n", "==", "&&", "||", ".?", " in ", "true", "null", "1", "2.5", "9" * 19, "'a'", "x",
    "input", "steps", "map(x, ", "filter(x, ", "all(x, ", "has(", "size()", "orValue(", "sum()", "string(", "join('')",
    "é", "\0", "\ud800",
]  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda values: st.lists(values) | st.dictionaries(st.text(max_size=3), values),
    max_leaves=20,
)


def parsed(text: str) -> Expression | Problem:
    try:
        return Expression(text)
    except ExpressionError as error:
        return error.problem


def failure(expression: Expression, data: Any) -> EvaluationError | None:
    try:
        expression.evaluate({"input": data, "x": data})
    except EvaluationError as error:
        return error
    return None


@given(st.lists(st.sampled_from(WORDS), max_size=60).map("".join) | st.text(max_size=80), JSON)
@settings(max_examples=600, deadline=None)
def test_any_text_gives_a_value_or_an_error_with_a_place(text: str, data: Any) -> None:
    result = parsed(text)
    if isinstance(result, Problem):
        assert 0 <= result.offset <= len(text)
    elif error := failure(result, data):
        assert 0 <= error.offset < len(text)
        assert error.length >= 1


DEEP = ["(" * 2000 + "1" + ")" * 1999, "!" * 3999 + "x", "1" + "+1" * 1999, "[" * 4000, "x" + ".a" * 1999]


@pytest.mark.parametrize("text", DEEP)
def test_deep_text_is_refused(text: str) -> None:
    assert isinstance(parsed(text), Problem)


def test_long_text_is_refused() -> None:
    with pytest.raises(ExpressionError, match=r"has 4001 characters, expected at most 4000"):
        parse("1" * (MAX_TEXT + 1))


LARGE = {"xs": list(range(2000)), "s": "x" * 1000, "same": [["a" * 100] * 100] * 100}


@pytest.mark.parametrize(
    "text",
    [
        "input.xs.map(a, input.xs.map(b, input.xs.map(c, 1)))",
        "input.xs.all(a, input.xs.all(b, a >= 0 && b >= 0 && true))",
        "['a']" + ".map(x, x + x)" * 58,
        "['a']" + ".map(x, [x, x])" * 58,
        "[input.s].map(x, x.replace('x', input.s)).map(x, x.replace('x', input.s)).map(x, x.replace('x', input.s))",
        "input.xs.map(a, input.xs).map(a, a + a).map(a, a == a)",
        "input.xs.map(a, input.same == input.same)",
        "input.xs.map(a, string(a)).map(a, input.xs.map(b, string(b)).join(input.s))",
        "input.xs.map(a, input.xs.distinct())",
        "input.xs.map(a, input.xs.sort())",
        "input.xs.map(a, 5000 in input.xs)",
        "input.xs.exists(a, input.xs.map(b, b + 1).sum() < 0) || true",
    ],
)
def test_expensive_expression_is_stopped(text: str) -> None:
    with pytest.raises(EvaluationError, match="too much work"):
        Expression(text).evaluate({"input": LARGE})


def test_exhausted_budget_is_not_absorbed_by_a_condition() -> None:
    with pytest.raises(EvaluationError, match="too much work"):
        Expression("input.xs.all(a, input.xs.all(b, a + b >= 0)) || true").evaluate({"input": LARGE})


def test_deep_data_is_an_error() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(EvaluationError, match="nested too deeply"):
        Expression("input == input").evaluate({"input": deep})


class Untouchable(dict[str, Any]):
    """Data that must not be read."""

    def __getitem__(self, key: str) -> Any:
        raise AssertionError(f"{key} was read")

    __iter__ = items = values = keys = __len__ = __getitem__  # type: ignore[assignment]


def test_what_is_not_read_is_not_touched_and_a_path_costs_no_budget() -> None:
    value = {"inner": Untouchable()}
    budget = Budget()
    assert (
        Expression("input.a").evaluate({"input": {"a": value, "b": Untouchable()}, "steps": Untouchable()}, budget)
        is value
    )
    assert budget.left == BUDGET
