"""Values that somebody else keeps are copied when they are read, each by itself, and once."""

from __future__ import annotations

from typing import Any

import pytest

from tasker.contracts.own_copy import CopiedWhenRead


def test_what_is_changed_is_changed_for_nobody_else_and_stays_so_for_oneself() -> None:
    kept: dict[str, Any] = {"a": {"n": [1]}, "b": {"n": [2]}}
    mine, yours = CopiedWhenRead.of(kept), CopiedWhenRead.of(kept)
    mine["a"]["n"].append(9)
    assert (mine["a"], yours["a"], kept["a"]) == ({"n": [1, 9]}, {"n": [1]}, {"n": [1]})
    whole = dict(mine)
    assert whole == {"a": {"n": [1, 9]}, "b": {"n": [2]}}
    assert whole["a"] is mine["a"]


def test_what_is_not_read_is_not_asked_for() -> None:
    read: list[str] = []

    def kept(name: str) -> Any:
        read.append(name)
        return {"of": name}

    values = CopiedWhenRead({"a": None, "b": None}, kept)
    assert (len(values), [*values], "a" in values, "c" in values) == (2, ["a", "b"], True, False)
    assert read == []
    assert values.get("b") == values["b"] == {"of": "b"}
    assert values.get("c") is None
    with pytest.raises(KeyError):
        values["c"]
    assert read == ["b"]


def test_those_that_are_such_already_are_the_same() -> None:
    values = CopiedWhenRead.of({"a": 1})
    assert CopiedWhenRead.of(values) is values
