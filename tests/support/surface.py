"""The public surface of an import package as plain data: modules, names, signatures, fields, defaults.

Prints it as JSON: `python tests/support/surface.py PACKAGE`, which is how `tests/data/tasker_core.json` was recorded.
Needs nothing of Tasker, so that it can look at any package.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import json
import pkgutil
import sys
from collections.abc import Iterator
from enum import Enum
from types import ModuleType
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

SPECIAL = ("__iter__", "__getitem__", "__contains__", "__len__", "__enter__", "__exit__")
REQUIRED = "required"
TYPING = {"TYPE_CHECKING", "Any", "ClassVar", "Literal", "Union", "annotations"}


def surface(package: str) -> dict[str, dict[str, Any]]:
    """Every module by name, without its package, with its `__all__` and what is public in it."""
    return {name: described(module, package) for name, module in modules(package)}


def modules(package: str) -> Iterator[tuple[str, ModuleType]]:
    """The package and everything below it."""
    root = importlib.import_module(package)
    yield ".", root
    for info in pkgutil.walk_packages(root.__path__, f"{package}."):
        yield info.name.removeprefix(package), importlib.import_module(info.name)


def described(module: ModuleType, package: str) -> dict[str, Any]:
    """A module's public names: its own are described, those that it lists say where they are from."""
    listed = getattr(module, "__all__", None)
    names = sorted(set(listed or ()) | {name for name in vars(module) if not name.startswith("_")} - TYPING)
    found = {name: described_value(getattr(module, name), module, package) for name in names}
    public = {name: value for name, value in found.items() if value and ("from" not in value or name in (listed or ()))}
    return {"all": sorted(listed) if listed is not None else None, "names": public}


def described_value(value: Any, module: ModuleType, package: str) -> dict[str, Any] | None:
    """What a name stands for; None for what the module has from a foreign package."""
    home = getattr(value, "__module__", module.__name__)
    if inspect.ismodule(value) or home.split(".")[0] != package:
        return None if not _is_plain(value) else {"value": text(value)}
    if home != module.__name__:
        return {"from": f"{home.removeprefix(package)}:{getattr(value, '__name__', '')}"}
    if inspect.isclass(value):
        return {"class": members(value)}
    return {"function": signature(value)} if inspect.isroutine(value) else {"value": text(value)}


def _is_plain(value: Any) -> bool:
    return type(value).__module__ == "builtins" and not callable(value) and not inspect.ismodule(value)


def members(cls: type) -> dict[str, str]:
    """Fields, enumerated values, properties and methods of a class, inherited ones of the package among them."""
    found = fields(cls)
    if issubclass(cls, Enum):
        found |= {name: f"= {member.value!r}" for name, member in cls.__members__.items()}
    elif cls.__init__ is not object.__init__ and not found and not issubclass(cls, Exception):
        found["__init__"] = signature(cls.__init__)
    package = cls.__module__.split(".")[0]
    for owner in [owner for owner in cls.__mro__ if owner.__module__.split(".")[0] == package]:
        for name, value in vars(owner).items():
            if (not name.startswith("_") or name in SPECIAL) and name not in found | {"model_config": "", "Config": ""}:
                found[name] = member(value)
    return dict(sorted(found.items()))


def fields(cls: type) -> dict[str, str]:
    """The fields of a model or a dataclass, with their defaults."""
    if issubclass(cls, BaseModel):
        return {name: default(field) for name, field in cls.model_fields.items()}
    if not dataclasses.is_dataclass(cls):
        return {}
    return {item.name: default(item) for item in dataclasses.fields(cls) if not item.name.startswith("_")}


def default(field: FieldInfo | dataclasses.Field[Any]) -> str:
    """A field's default."""
    if isinstance(field, FieldInfo):
        return REQUIRED if field.is_required() else f"= {text(field.get_default(call_default_factory=True))}"
    if field.default_factory is not dataclasses.MISSING:
        return f"= {text(field.default_factory())}"
    return REQUIRED if field.default is dataclasses.MISSING else f"= {text(field.default)}"


def member(value: Any) -> str:
    """A property, a method with its parameters, or an attribute with its value."""
    if _is_readable(value):
        value = value.__wrapped__
    if isinstance(value, property):
        return "property"
    if isinstance(value, (classmethod, staticmethod)):
        return f"{type(value).__name__} {signature(value.__func__)}"
    return signature(value) if inspect.isfunction(value) else f"= {text(value)}"


def _is_readable(value: Any) -> bool:
    """True for a method of ours that may be read as well as called."""
    return any(cls.__module__ == "tasker.handlers.readable" for cls in type(value).__mro__)


def signature(function: Any) -> str:
    """Parameters with their defaults, without types."""
    try:
        found = inspect.signature(function)
    except (TypeError, ValueError):
        return "(...)"
    bare = [
        p.replace(annotation=p.empty, default=p.default if p.default is p.empty else _Text(p.default))
        for p in found.parameters.values()
        if p.name not in ("self", "cls")
    ]
    return str(inspect.Signature(bare))


class _Text:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return text(self.value)


def text(value: Any) -> str:
    """A value as text that another package can have as well: an enumerated one is its value, a class its name."""
    if isinstance(value, Enum):
        return repr(value.value)
    if isinstance(value, tuple):
        return f"({', '.join(text(item) for item in value)})"
    if inspect.isclass(value) or inspect.isroutine(value):
        return str(value.__name__)
    found = repr(value)
    return f"<{type(value).__name__}>" if " at 0x" in found else found


def as_json(found: dict[str, dict[str, Any]]) -> str:
    """One line for each name, so that people can read it and compare two of them."""
    lines = []
    for module, described in found.items():
        names = [f"   {json.dumps(name)}: {json.dumps(value)}" for name, value in described["names"].items()]
        listed = json.dumps(described["all"])
        lines.append(
            f' {json.dumps(module)}: {{\n  "all": {listed},\n  "names": {{\n' + ",\n".join(names) + "\n  }\n }"
        )
    return "{\n" + ",\n".join(lines) + "\n}"


if __name__ == "__main__":
    print(as_json(surface(sys.argv[1])))
