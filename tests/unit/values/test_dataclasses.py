"""Data classes that are made more cheaply, and values that are made in another way, are no others."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import math
import pickle
from collections.abc import Callable, Iterator
from dataclasses import FrozenInstanceError, asdict, field, fields, replace
from importlib import import_module
from pkgutil import walk_packages
from typing import Any, ClassVar, Generic, TypeVar

import pytest

import tasker
from tasker.dataclasses import dataclass

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Point:
    """Where something is."""

    x: int
    y: int = 2


@pytest.fixture(params=[dataclass, dataclasses.dataclass], ids=["ours", "the standard library's"])
def make(request: pytest.FixtureRequest) -> Any:
    """The decorator: what holds for ours holds for the one that it stands for."""
    return request.param


@pytest.fixture(params=[True, False], ids=["slots", "no slots"])
def frozen(request: pytest.FixtureRequest, make: Any) -> Any:
    """The decorator of frozen classes."""
    return make(frozen=True, slots=request.param)


def test_values_have_what_they_are_given_and_defaults(frozen: Any) -> None:
    @frozen
    class Some:
        a: int
        b: int = 2
        c: list[int] = field(default_factory=list)
        d: int = field(default=4, init=False)
        e: list[int] = field(default_factory=list, init=False)
        known: ClassVar[int] = 7

    one, other = Some(1), Some(1, c=[3])
    assert asdict(one) == {"a": 1, "b": 2, "c": [], "d": 4, "e": []}
    assert (one.c is not Some(1).c, one.e is not other.e, other.c, Some.known) == (True, True, [3], 7)
    assert repr(one) == f"{Some.__qualname__}(a=1, b=2, c=[], d=4, e=[])"
    assert [each.name for each in fields(Some)] == ["a", "b", "c", "d", "e"]
    assert (replace(one, a=5, c=[1]), Some.__match_args__) == (Some(5, c=[1]), ("a", "b", "c"))
    with pytest.raises(TypeError, match=r"Some\.__init__\(\) missing 1 required positional argument: 'a'"):
        Some()
    with pytest.raises(TypeError, match="unexpected keyword argument 'f'"):
        Some(1, f=2)


def test_a_frozen_value_refuses_to_be_changed(frozen: Any) -> None:
    @frozen
    class Some:
        a: int

    value, bare = Some(1), object.__new__(Some)  # the second one as `pickle` makes it
    for each in (value, bare):
        with pytest.raises(FrozenInstanceError, match="cannot assign to field 'a'"):
            each.a = 2
        with pytest.raises(FrozenInstanceError, match="cannot delete field 'a'"):
            del each.a
    assert value.a == 1


def test_a_frozen_value_takes_no_other_attribute_but_where_a_class_below_has_room() -> None:
    class Below(Point):
        pass

    below = Below(1)
    below.other = 5  # type: ignore[attr-defined]  # the point
    del below.other  # type: ignore[attr-defined]
    with pytest.raises(FrozenInstanceError):
        below.x = 2  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        Point(1).other = 5  # type: ignore[attr-defined]


def test_a_value_that_is_not_frozen_can_be_changed_and_has_no_hash(make: Any) -> None:
    @make(slots=True)
    class Some:
        a: int
        b: int = 2

    value = Some(1)
    value.a = 5
    assert value == Some(5) != Some(6)
    with pytest.raises(TypeError, match="unhashable"):
        hash(value)
    with pytest.raises(AttributeError):
        value.c = 1


@pytest.mark.parametrize("names", ["", "a", "ab"])
def test_values_are_equal_by_their_fields_and_of_one_class_only(frozen: Any, names: str) -> None:
    body = {"__annotations__": dict.fromkeys(names, "float"), "__module__": __name__}
    one, other = (frozen(type("Some", (), {**body})) for _ in range(2))
    given = range(len(names))

    assert one(*given) == one(*given) != other(*given)
    assert hash(one(*given)) == hash(tuple(given))
    assert one(*[math.nan for _ in names]) == one(*[math.nan for _ in names])
    assert not names or one(*given) != one(*[5 for _ in names])


def test_fields_can_be_left_out_of_what_is_compared_or_shown(frozen: Any) -> None:
    @frozen
    class Some:
        a: int
        b: int = field(compare=False)
        c: int = field(repr=False, default=1)

    assert Some(1, 2) == Some(1, 3) != Some(1, 2, 3)
    assert hash(Some(1, 2)) == hash((1, 1))
    assert repr(Some(1, 2)) == f"{Some.__qualname__}(a=1, b=2)"


def test_without_equality_values_are_equal_to_themselves_alone(make: Any) -> None:
    @make(frozen=True, slots=True, eq=False)
    class Some:
        a: int

    assert Some(1) != Some(1)
    assert len({Some(1), Some(1)}) == 2


def test_what_a_class_has_of_its_own_stays(frozen: Any) -> None:
    @frozen
    class Some:
        a: int

        def __repr__(self) -> str:
            return "own"

        def __hash__(self) -> int:
            return 7

        def __post_init__(self) -> None:
            if self.a < 0:
                raise ValueError("too small")

    @frozen
    class Equal:
        a: int

        def __eq__(self, other: object) -> bool:
            return True

    assert (repr(Some(1)), hash(Some(1)), Equal(1) == 3, hash(Equal(2))) == ("own", 7, True, hash((2,)))
    with pytest.raises(ValueError, match="too small"):
        Some(-1)


def test_a_value_that_holds_itself_can_be_shown(make: Any) -> None:
    @make
    class Some:
        inner: Any = None

    value = Some()
    value.inner = value
    assert repr(value) == f"{Some.__qualname__}(inner=...)"


@pytest.mark.parametrize("below", [dataclass, dataclasses.dataclass])
def test_a_class_below_has_the_fields_of_both(frozen: Any, below: Callable[..., Any]) -> None:
    @frozen
    class Above(Generic[T]):
        a: T
        b: int = 2

    @below(frozen=True)
    class Below(Above[int]):
        c: int = 3

    class Plain(Above[int]):
        def __init__(self) -> None:
            super().__init__(9)

    assert repr(Below(1)) == f"{Below.__qualname__}(a=1, b=2, c=3)"
    assert (Below(1) == Below(1), Below(1) == Above(1), Plain().a) == (True, False, 9)
    with pytest.raises(FrozenInstanceError):
        Below(1).a = 3
    with pytest.raises(TypeError, match="cannot inherit non-frozen dataclass from a frozen one"):
        below(type("Melting", (Above,), {}))


def test_frozen_values_travel() -> None:
    value = Point(1, 3)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(value, protocol)) == value
    assert copy.copy(value) == copy.deepcopy(value) == value


def test_what_is_written_late_can_be_inspected(frozen: Any) -> None:
    @frozen
    class Some:
        a: int
        b: str = "b"

    assert str(inspect.signature(Some)) == "(a: 'int', b: 'str' = 'b') -> None"
    assert Some.__init__ is Some.__init__
    assert Some.__doc__ is None or "(a: 'int'" in Some.__doc__


def data_classes() -> Iterator[Any]:
    for module in walk_packages(tasker.__path__, "tasker."):
        if not module.name.endswith("__main__") and ".migrations." not in module.name:
            for each in vars(import_module(module.name)).values():
                if isinstance(each, type) and each.__module__ == module.name and dataclasses.is_dataclass(each):
                    yield each


def twin_of(kind: Any) -> Any:
    """The same fields in a class of the standard library."""
    same = [
        (each.name, each.type, field(default=each.default, init=each.init))
        if each.default_factory is dataclasses.MISSING
        else (each.name, each.type, field(default_factory=each.default_factory, init=each.init))
        for each in fields(kind)
    ]
    return dataclasses.make_dataclass(kind.__name__, same, frozen=kind.__dataclass_params__.frozen)


def parameters(kind: Any) -> list[tuple[Any, ...]]:
    found = inspect.signature(kind).parameters.values()
    factories = {each.name for each in fields(kind) if each.default_factory is not dataclasses.MISSING}
    return [
        (each.name, each.kind, each.annotation, "made" if each.name in factories else each.default) for each in found
    ]


def test_every_data_class_takes_what_the_standard_library_would_have_it_take() -> None:
    seen = list(data_classes())

    assert len(seen) > 300
    for kind in seen:
        assert parameters(kind) == parameters(twin_of(kind)), kind
