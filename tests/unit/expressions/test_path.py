"""Paths to values, read and written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasker.expressions.path import DataPath, PathError, parse_path


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("input.at", DataPath(None, ("at",))),
        ("input.trip.starts-at", DataPath(None, ("trip", "starts-at"))),
        ("input.items[0].at", DataPath(None, ("items", "0", "at"))),
        ('input["due date"]', DataPath(None, ("due date",))),
        ("steps.quote.valid_until", DataPath("quote", ("valid_until",))),
        ('steps["a.b"]["x\\"y"][12]', DataPath("a.b", ('x"y', "12"))),
    ],
)
def test_a_path_names_a_value(text: str, path: DataPath) -> None:
    assert parse_path(text) == path
    assert parse_path(str(path)) == path


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("", 0), ("input", 0), ("inputs.at", 0), ("/at", 0), ("context.at", 0), ("input.", 5), ("input..at", 5),
        ("input.a b", 7), ("input.a[-1]", 7), ("input.a[x]", 7), ("input.a.0", 7), ("input.a + 1", 7),
        ("steps.quote", 11), ("input[\"\\x\"]", 5), 
        ("input[\"\\u0000\"]", 5), ("input[\"\\ud800\"]", 5), ("input.é", 5),
    ],
)  # fmt: skip
def test_a_malformed_path_says_where(text: str, offset: int) -> None:
    with pytest.raises(PathError, match=r"expected a path such as input\.customer\.id") as caught:
        parse_path(text)
    assert caught.value.offset == offset


FIELDS = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)))


@given(st.none() | FIELDS.filter(bool), st.lists(FIELDS, min_size=1, max_size=4))
def test_every_path_can_be_written_and_read(step: str | None, parts: list[str]) -> None:
    path = DataPath(step, tuple(parts))
    assert parse_path(str(path)) == path
