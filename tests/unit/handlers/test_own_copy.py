"""Values that somebody else keeps are copied when they are read, each by itself, and once."""

from __future__ import annotations

from typing import Any

import pytest

from tasker.handlers.copies import CopyOnRead


def test_what_is_changed_is_changed_for_nobody_else_and_stays_so_for_oneself() -> None:
    kept: dict[str, Any] = {"a": {"n": [1]}, "b": {"n": [2]}}
    mine, yours = CopyOnRead.of(kept), CopyOnRead.of(kept)
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

    values = CopyOnRead({"a": None, "b": None}, kept)
    assert (len(values), [*values], "a" in values, "c" in values) == (2, ["a", "b"], True, False)
    assert read == []
    assert values.get("b") == values["b"] == {"of": "b"}
    assert values.get("c") is None
    with pytest.raises(KeyError):
        values["c"]
    assert read == ["b"]


def test_each_reader_has_copies_of_its_own() -> None:
    """Whoever reads behind a handler (its next call, the cover of secrets) sees nothing of what it has changed."""
    kept = {"a": [1], "b": [2]}
    first = CopyOnRead.of(kept)
    first["a"].clear()
    again = CopyOnRead.of(first)
    assert (again["a"], [*again]) == ([1], ["a", "b"])
    again["b"].clear()
    assert first["b"] == [2]


def test_threads_that_read_a_value_first_get_the_same_copy() -> None:
    values = CopyOnRead({"a": None}, lambda name: [values["a"] if inner.pop() else 1])
    inner = [False, True]  # while the one is copied the other reads it
    assert values["a"] is values["a"] is values._copies["a"]
    assert values["a"] == [1]
