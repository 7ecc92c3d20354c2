"""Random expressions over a fixed document."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

DATA: dict[str, Any] = {
    "input": {
        "a": 3,
        "b": 2.5,
        "s": "gold",
        "t": True,
        "n": None,
        "xs": [1, 2, 3, 2],
        "ys": [],
        "o": {"k": "v", "d": 7},
        "items": [{"q": 1, "p": 2.0, "n": "x"}, {"q": 4, "p": 0.5, "n": "yy"}],
    },
    "steps": {"one": {"ok": True, "v": -4, "big": 9223372036854775807}, "two": {}},
}


def choose(*texts: str) -> st.SearchStrategy[str]:
    return st.sampled_from(texts)


def filled(template: str, *parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(*parts).map(lambda texts: template.format(*texts))


Kinds = dict[str, st.SearchStrategy[str]]


def leaves() -> Kinds:
    number = choose(
        "0", "1", "-2", "7", "2.5", "0.0", "1e3", "input.a", "input.b", "steps.one.v", "steps.one.big", "input.o.d",
        "input.xs.size()", "size(input.s)", "input.xs[1]", "input.xs[9]", "input.items[1].p", "0x1F", "x",
    )  # fmt: skip
    return {
        "number": number,
        "text": choose("'gold'", "''", '"a b"', "input.s", "input.o.k", "input.items[0].n", r"'\u00e9\n'", "'😀'"),
        "list": choose("input.xs", "input.ys", "[1, 2]", "[]", "input.items.map(i, i.q)", "[1, 'a', null]"),
        "bool": choose(
            "true", "false", "input.t", "steps.one.ok", "has(input.zz)", "has(input.s)", "has(steps.two.v)", "input.zz",
            "input.n == null", "has(input.o.k)", "'k' in input.o", "has(input.n.x)",
        ),
    }  # fmt: skip


def deeper(kinds: Kinds) -> Kinds:
    number, text, items, condition = (kinds[name] for name in ("number", "text", "list", "bool"))
    order, sign = choose("<", "<=", ">", ">=", "==", "!="), choose("+", "-", "*", "/", "%")
    return {
        "number": st.one_of(
            number,
            filled("({} {} {})", number, sign, number),
            filled("({} ? {} : {})", condition, number, number),
            filled("int({})", st.one_of(number, text)),
            filled("double({})", st.one_of(number, text)),
            filled("-({})", number),
            filled("{}[{}]", items, number),
            filled("{}.size()", st.one_of(text, items)),
        ),
        "text": st.one_of(
            text,
            filled("({} + {})", text, text),
            filled("({} ? {} : {})", condition, text, text),
            filled("string({})", st.one_of(number, text, condition)),
        ),
        "list": st.one_of(
            items,
            filled("{}.filter(x, {})", items, condition),
            filled("{}.map(x, {})", items, number),
            filled("{}.map(x, {}, {})", items, condition, text),
            filled("({} + {})", items, items),
            filled("[{}, {}]", number, text),
        ),
        "bool": st.one_of(
            condition,
            filled("({} && {})", condition, condition),
            filled("({} || {})", condition, condition),
            filled("!({})", condition),
            filled("({} {} {})", number, order, number),
            filled("({} {} {})", text, order, text),
            filled("({} {} {})", condition, order, condition),
            filled("{}.{}({})", text, choose("startsWith", "endsWith", "contains"), text),
            filled("{}.{}(x, {})", items, choose("all", "exists", "exists_one"), condition),
            filled("({} in {})", number, items),
            filled("({} == {})", text, number),
            filled("({} == {})", items, items),
        ),
    }


def expressions() -> st.SearchStrategy[str]:
    kinds = leaves()
    for _ in range(3):
        kinds = deeper(kinds)
    return st.one_of(*kinds.values())
