"""Every name of tasker_core 0.1.8 is here, with its parameters, fields and defaults; ours may add optional ones."""

from __future__ import annotations

import importlib
import inspect
import json
import re
from pathlib import Path
from typing import Any

import pytest

import tasker_core
from tests.support import surface
from tests.support.tables import for_each

RECORDED: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "data" / "tasker_core.json").read_text("utf-8")
)
NAMES = [(module, name) for module, described in RECORDED.items() for name in described["names"]]

LEFT_OUT: dict[str, str] = {}
"""Names of the record that are not here: `module:name` or `module:name.member` -> why."""


def at(module: str) -> Any:
    return importlib.import_module(f"tasker_core{module}".rstrip("."))


def test_the_record_holds_the_whole_surface() -> None:
    members = [member for module, name in NAMES for member in RECORDED[module]["names"][name].get("class", {})]

    assert len(NAMES) > 300
    assert len(members) > 800


def test_what_is_left_out_says_why_and_is_not_here() -> None:
    for place, reason in LEFT_OUT.items():
        module, _, name = place.partition(":")
        assert reason
        assert not hasattr(at(module), name), f"{place} is here by now"


@pytest.mark.parametrize("module", RECORDED)
def test_a_module_lists_the_published_names(module: str) -> None:
    assert set(RECORDED[module]["all"] or ()) <= set(getattr(at(module), "__all__", ()))


def test_the_root_lists_the_published_names_and_no_other() -> None:
    assert sorted(tasker_core.__all__) == RECORDED["."]["all"]


@for_each([place for place in NAMES if ":".join(place) not in LEFT_OUT])
def test_a_published_name_is_what_it_was(published: tuple[str, str]) -> None:
    module, name = published
    recorded, found = RECORDED[module]["names"][name], getattr(at(module), name)
    if "from" in recorded:
        home, _, own = recorded["from"].partition(":")
        assert found is getattr(at(home), own or name)
    elif "value" in recorded:
        assert found == eval(recorded["value"])
    elif "function" in recorded:
        check_parameters(recorded["function"], surface.signature(found))
    else:
        for member, wanted in recorded["class"].items():
            if f"{module}:{name}.{member}" not in LEFT_OUT:
                check_member(member, wanted, described(found, member))


def check_member(member: str, recorded: str, found: str) -> None:
    if "(" in recorded and not recorded.startswith("="):
        assert kind(found) == kind(recorded), member
        check_parameters(recorded, found)
    else:
        assert (member, found) == (member, recorded)


def described(cls: type, member: str) -> str:
    """What the class has under that name, in the record's form."""
    known = surface.fields(cls)
    return known[member] if member in known else surface.member(inspect.getattr_static(cls, member))


def kind(text: str) -> str:
    return text.partition("(")[0].strip()


def parameters(text: str) -> tuple[list[str], list[str]]:
    """The parameters that have a place, and those that are given by name alone."""
    inside = text.partition("(")[2].rpartition(")")[0]
    parts = [part for part in re.split(r", (?![^(\[{]*[)\]}])", inside) if part]
    star = next((index for index, part in enumerate(parts) if part.startswith("*")), len(parts))
    return parts[:star], [part for part in parts[star:] if part != "*"]


def check_parameters(recorded: str, found: str) -> None:
    """The published ones come first, in order, with their defaults; what is added is optional."""
    placed, named = parameters(recorded)
    our_placed, our_named = parameters(found)
    assert len(our_placed) >= len(placed), (recorded, found)
    assert all(fits(*pair) for pair in zip(placed, our_placed, strict=False)), (recorded, found)
    assert set(named) <= set(our_named)
    added = [*our_placed[len(placed) :], *(part for part in our_named if part not in named)]
    assert all("=" in part or part.startswith("*") for part in added)


def fits(recorded: str, found: str) -> bool:
    """The same parameter with the same default; one that was required may have one."""
    return recorded == (found if "=" in recorded else found.partition("=")[0])
