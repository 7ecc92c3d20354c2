"""A table is a frozen declaration: its class has the defaults, an instance the values, and `parse` checks them."""

from __future__ import annotations

import pickle
from typing import Annotated, Any, Literal

import pytest

from tasker.settings.table import (
    Bounds,
    Check,
    InvalidTable,
    Substituted,
    Table,
    choice,
    flag,
    number,
    refused,
    several,
    table,
    text,
    whole,
)


def _lower(value: str) -> str:
    if value.isascii():
        return value.lower()
    raise refused("Not ASCII", "Use ASCII")


class Inner(Table):
    """Inside."""

    size: int = whole(3, 1, 9, "Size.", single_process=5)
    share: float = number(0.5, 0, 1, "Share.")


class Named(Table):
    """Entry of a list."""

    name: str
    weight: int = whole(1, 1, 10, "Weight.")


class Outer(Table):
    """Outside."""

    on: bool = flag(False, "On.")
    mode: Literal["one", "two"] = choice("one", "Mode.")
    name: Annotated[str, Check(_lower)] = text("x", "Name.")
    numbers: tuple[Annotated[int, Bounds(1, 5)], ...] = several((), "Numbers.")
    entries: tuple[Named, ...] = several((), "Entries.")
    inner: Inner = table(Inner)

    def check(self) -> None:
        if self.on and self.mode == "two":
            raise refused("Both", "Use one")


def issues(**values: Any) -> list[tuple[tuple[str | int, ...], str, str]]:
    with pytest.raises(InvalidTable) as caught:
        Outer.parse(values)
    return [(issue.location, issue.kind, issue.issue) for issue in caught.value.issues]


def test_the_class_has_the_defaults_and_an_instance_what_is_set() -> None:
    assert (Inner.size, Inner().size, Inner(size=4).size, Outer().inner.size) == (3, 3, 4, 3)
    assert Inner(size=3) == Inner()
    assert Inner(size=3).is_set("size")
    assert not Inner().is_set("size")
    assert Outer(inner=Inner(size=4)).to_dict(only_set=True) == {"inner": {"size": 4}}
    assert pickle.loads(pickle.dumps(Outer(inner=Inner(size=4)))) == Outer(inner=Inner(size=4))


def test_a_table_is_frozen_and_knows_its_settings() -> None:
    with pytest.raises(AttributeError, match="frozen"):
        Inner().size = 4  # type: ignore[misc]
    with pytest.raises(TypeError, match="no setting sice"):
        Inner(sice=4)  # type: ignore[call-arg]
    assert Inner(size=4).replace(share=0.1) == Inner(size=4, share=0.1)
    assert not Inner(size=4).without("size").is_set("size")
    assert "secret" not in repr(Outer(name="secret"))


def test_a_single_process_has_defaults_of_its_own() -> None:
    assert Outer.for_single_process().inner == Inner(size=5)
    assert Outer.for_single_process().to_dict(only_set=True) == {"inner": {"size": 5}}


def test_values_are_converted_by_their_types() -> None:
    parsed = Outer.parse({"name": "ABC", "numbers": [1, 5], "inner": {"share": 1}, "entries": [{"name": "a"}]})
    assert (parsed.name, parsed.numbers, parsed.entries) == ("abc", (1, 5), (Named(name="a"),))
    assert isinstance(parsed.inner.share, float)


def test_only_a_placeholder_may_be_text_for_another_type() -> None:
    values = {"on": Substituted("TRUE"), "numbers": Substituted("1, 2"), "inner": {"size": Substituted("7")}}
    assert Outer.parse(values) == Outer(on=True, numbers=(1, 2), inner=Inner(size=7))
    assert issues(on="true", inner={"size": "7"}) == [(("on",), "type", ""), (("inner", "size"), "type", "")]
    assert issues(on=Substituted("yes")) == [(("on",), "type", "")]


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({"inner": {"size": 10}}, (("inner", "size"), "value", "Exceeds maximum allowed value (9)")),
        ({"inner": {"size": 0}}, (("inner", "size"), "value", "Below minimum allowed value (1)")),
        ({"inner": {"size": True}}, (("inner", "size"), "type", "")),
        ({"inner": {"share": float("nan")}}, (("inner", "share"), "type", "")),
        ({"inner": 3}, (("inner",), "type", "")),
        ({"mode": "three"}, (("mode",), "type", "")),
        ({"name": ""}, (("name",), "value", "Must not be empty")),
        ({"name": "ä"}, (("name",), "value", "Not ASCII")),
        ({"numbers": [1, 6]}, (("numbers", 1), "value", "Exceeds maximum allowed value (5)")),
        ({"numbers": [1, "2"]}, (("numbers", 1), "type", "")),
        ({"entries": [{"weight": 2}]}, (("entries", 0, "name"), "value", "Missing")),
        ({"nmae": "x"}, (("nmae",), "unknown", "")),
        ({"on": True, "mode": "two"}, ((), "value", "Both")),
    ],
)
def test_an_issue_says_where_and_what(values: dict[str, Any], found: tuple[Any, ...]) -> None:
    assert issues(**values) == [found]


def test_all_issues_are_found_at_once() -> None:
    assert len(issues(on=1, mode="x", inner={"size": 0, "share": 2})) == 4
