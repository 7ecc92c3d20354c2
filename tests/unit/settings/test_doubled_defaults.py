"""No default of a setting stands a second time in code that has the same name for it."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from tasker.settings.table import Table
from tests.unit.settings.test_default_settings import FIELDS, constants, is_nested

ROOT = Path(__file__).parents[3]
PACKAGES = {"tasker": ROOT, "backends": ROOT / "backends", "plugins": ROOT / "plugins"}
MILLISECONDS = {
    "ms": Fraction(1),
    "seconds": Fraction(1000),
    "minutes": Fraction(60_000),
    "hours": Fraction(3_600_000),
    "days": Fraction(86_400_000),
}
UNIT = re.compile(f"_({'|'.join(MILLISECONDS)})$")
NO_DEFAULT = (None, True, False, 0, "", (), {}, [])
"""On, off, none and nothing: what everybody says who says nothing."""

NAMES = {UNIT.sub("", key): {name, UNIT.sub("", key)} for _, name, _, key in FIELDS}
"""What code calls a setting beside the setting's own name."""

COINCIDENCES: dict[tuple[str, str], str] = {
    ("OrchestrationClient", "max_retries"): "repetitions of a call, and not executions of a step",
    ("RedisCache", "max_connections"): "connections of a cache, and not of the broker",
    ("RabbitmqSettings", "connection_timeout"): "connecting to the broker, and not listening to the database",
    ("SqlResource", "timeout"): "one statement of a step, and no breaker or request of ours",
    ("HttpServer", "grace"): "a request that ends while its server stops, and not a step that is taken away",
}
"""(class, name) of a default that is another's value by chance -> what else it is."""


class Default(NamedTuple):
    """A default of a field or parameter: where it stands, what it is, and by which constants."""

    name: str
    owner: str
    module: str
    unit: str | None
    value: Any
    constants: frozenset[str]

    @property
    def package(self) -> str:
        return self.module.partition(".")[0]

    @property
    def place(self) -> str:
        return f"{self.module}.{self.owner} {self.name}"

    def same_as(self, other: Default) -> bool:
        """The same value, or the same time in another unit; a time without a unit in its name is in seconds."""
        if self.unit == other.unit or not (is_number(self.value) and is_number(other.value)):
            return self.value == other.value
        return self.value * MILLISECONDS[self.unit or "seconds"] == other.value * MILLISECONDS[other.unit or "seconds"]


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def everything() -> Iterator[Default]:
    for folder, base in PACKAGES.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            module = ".".join(path.relative_to(base).with_suffix("").parts).removesuffix(".__init__")
            yield from defaults(module, ast.parse(path.read_text("utf-8")))


def defaults(module: str, tree: ast.AST) -> Iterator[Default]:
    """Those of the fields of classes, and of the parameters of constructors."""
    for owner in ast.walk(tree):
        if isinstance(owner, ast.ClassDef):
            for field, value in [each for line in owner.body for each in given(line)]:
                yield from default(module, owner.name, field, value)


def given(line: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and line.value is not None:
        yield line.target.id, line.value
    if isinstance(line, ast.FunctionDef) and line.name == "__init__":
        placed = [*line.args.posonlyargs, *line.args.args]
        yield from ((each.arg, value) for each, value in zip(placed[::-1], line.args.defaults[::-1], strict=False))
        named = zip(line.args.kwonlyargs, line.args.kw_defaults, strict=True)
        yield from ((each.arg, value) for each, value in named if value is not None)


def default(module: str, owner: str, field: str, value: ast.expr) -> Iterator[Default]:
    """Of what a settings table gives its kind the first is the default."""
    call = value if isinstance(value, ast.Call) and value.args and not is_nested(value) else None
    value = call.args[0] if call else value
    try:
        found = eval(ast.unparse(value), vars(import_module(module)))
    except Exception:  # what an object gets when it is made, and what stands inside a function
        return
    unit = UNIT.search(field)
    yield Default(UNIT.sub("", field), owner, module, unit and unit[1], found, frozenset(named(value)))


def named(value: ast.expr) -> Iterator[str]:
    """The constants that a default is made of, and the objects whose default it takes over."""
    yield from constants(value)
    yield from (ast.unparse(node) for node in ast.walk(value) if isinstance(node, ast.Attribute))


def is_table(each: Default) -> bool:
    found = getattr(sys.modules[each.module], each.owner, None)
    return isinstance(found, type) and issubclass(found, Table)


def doubles() -> Iterator[tuple[Default, Default]]:
    """A default of a table, and the same in code that calls it the same and does not take it from there.

    Two constants are two things on purpose, and two packages that know nothing of each other share none.
    """
    found = [each for each in everything() if each.value not in NO_DEFAULT]
    tables, code = [each for each in found if is_table(each)], [each for each in found if not is_table(each)]
    for table in tables:
        for other in (each for each in code if each.name in NAMES.get(table.name, {table.name})):
            own_constant = table.constants and other.constants
            apart = own_constant or refers_to_a_table(other) or len({table.package, other.package, "tasker"}) > 2
            if table.same_as(other) and not apart and not takes_over(table, other):
                yield table, other


def refers_to_a_table(other: Default) -> bool:
    """`Lease.lease_ms`: the default is the setting's."""
    module = vars(sys.modules[other.module])
    owners = [module.get(each.partition(".")[0]) for each in other.constants if "." in each]
    return any(isinstance(each, type) and issubclass(each, Table) for each in owners)


def takes_over(table: Default, other: Default) -> bool:
    """`DEFAULTS.url`, where `DEFAULTS` is an object of the other class: the default stands there alone."""
    module = vars(sys.modules[table.module])
    objects = (module.get(each.partition(".")[0]) for each in table.constants if "." in each)
    return any(type(each).__name__ == other.owner for each in objects)


def test_no_default_of_a_setting_stands_a_second_time() -> None:
    found = list(doubles())
    by_chance = {(each.owner, each.name) for pair in found for each in pair} & COINCIDENCES.keys()
    told = [
        f"{table.place} and {other.place}: {table.value!r}"
        for table, other in found
        if not {(table.owner, table.name), (other.owner, other.name)} & by_chance
    ]

    assert not told, "give each one constant in tasker/settings, or a reason here:\n" + "\n".join(told)
    assert by_chance == COINCIDENCES.keys(), "some reasons are needless now"
