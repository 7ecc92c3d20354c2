"""Every published name is there, with its parameters and defaults; ours may add optional ones at the end."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
from enum import Enum
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from tests.support.tables import for_each
from tests.unit.handlers.published import PUBLISHED

MEMBERS = [
    (module, owner, member)
    for module, text in PUBLISHED
    for paragraph in re.split(r"\n {4}(?=\S)", text)
    if paragraph.strip()
    for owner, _, members in [" ".join(paragraph.split()).partition(":")]
    for member in [m.strip() for m in members.split("|")]
]


def owner_of(module: str, owner: str) -> Any:
    loaded = importlib.import_module(module)
    return loaded if owner == "-" else getattr(loaded, owner)


def default_of(owner: Any, name: str) -> Any:
    """The default of a field or class attribute; `Parameter.empty` for a required field."""
    if isinstance(owner, type) and issubclass(owner, BaseModel) and name in owner.model_fields:
        field = owner.model_fields[name]
        return inspect.Parameter.empty if field.is_required() else field.get_default(call_default_factory=True)
    if dataclasses.is_dataclass(owner) and name in (fields := {f.name: f for f in dataclasses.fields(owner)}):
        factory = fields[name].default_factory
        default = fields[name].default
        if factory is not dataclasses.MISSING:
            return factory()
        return inspect.Parameter.empty if default is dataclasses.MISSING else default
    return getattr(owner, name)


def plain(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else value


def parameters(function: Any) -> list[inspect.Parameter]:
    return [p for p in inspect.signature(function).parameters.values() if p.name not in ("self", "cls")]


def test_the_table_is_read_as_it_was_written() -> None:
    assert len(MEMBERS) > 450
    assert ("tasker.types", "StepHandlerResult", "is_success") in MEMBERS


@for_each(MEMBERS)
def test_a_published_name_has_its_parameters_and_defaults(published: tuple[str, str, str]) -> None:
    module, owner, member = published
    where = owner_of(module, owner)
    if not member:
        return
    if member.startswith("@"):
        assert isinstance(inspect.getattr_static(where, member[1:]), property)
    elif "(" in member:
        name, _, wanted = member.rstrip(")").partition("(")
        check_parameters(getattr(where, name), wanted)
    else:
        name, _, wanted = (part.strip() for part in member.partition("="))
        found = default_of(where, name)
        assert found is not PydanticUndefined
        if wanted not in ("", "~"):
            assert plain(found) == eval(wanted)


def check_parameters(function: Any, wanted: str) -> None:
    """Published parameters come first, in order, with their defaults; what ours adds is optional."""
    published = parameters(eval(f"lambda {wanted}: None"))
    ours = {p.name: p for p in parameters(function)}
    names = [p.name for p in published if p.kind is p.POSITIONAL_OR_KEYWORD]
    positional = [p.name for p in ours.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert positional[: len(names)] == names
    for parameter in published:
        mine = ours.pop(parameter.name)
        assert mine.kind == parameter.kind
        if parameter.default is not parameter.empty:
            assert plain(mine.default) == parameter.default
    assert all(p.default is not p.empty or p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL) for p in ours.values())
