"""Tables `[resources.NAME]` and `[secrets.NAME]` of the configuration: kinds, references, problems."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field
from importlib import import_module
from ipaddress import ip_network
from math import inf
from typing import Any

from tasker.dataclasses import dataclass
from tasker.errors import ConfigurationError
from tasker.installed import offered
from tasker.secrets import FORM, KEY, ONLY_INCLUDED, Secret, known_providers, reference_in, references_in
from tasker.secrets import INCLUDED as PROVIDERS

GROUP = "tasker.resources"
KIND = "kind"
HTTP_KEYS = frozenset(("base_url", "headers", "bearer", "basic", "timeout_seconds", "connections", "private_networks"))
KEYS: Mapping[str, frozenset[str]] = {
    "http": HTTP_KEYS,
    "command": frozenset(
        ("argv", "arguments", "environment", "directory", "timeout_seconds", "output_bytes", "retry_on")
    ),
    "sql": frozenset(
        ("url", "read_only", "max_rows", "max_bytes", "timeout_seconds", "connections", "engine_database")
    ),
    "files": frozenset(("url", "writable", "max_bytes", "max_files", "options")),
    "notify": frozenset(("url", "timeout_seconds", "private_networks")),
    "llm": frozenset((*HTTP_KEYS, "model", "max_tokens")),
}
"""Keys of the tables of the kinds that Tasker has, beside the kind."""
NEEDED: Mapping[str, tuple[str, ...]] = {
    "http": ("base_url",),
    "command": ("argv",),
    "sql": ("url",),
    "files": ("url",),
    "notify": ("url",),
    "llm": ("base_url", "model"),
}
"""Keys that these tables must have."""
RESOURCES, SECRETS = "resources", "secrets"
Make = Callable[[Mapping[str, Any]], Any]
"""Factory of a kind: gets the settings with a `Secret` for each reference, and returns the client."""


@dataclass(frozen=True, slots=True)
class ResourceTables:
    """Resources by name, each a table with a `kind` or a ready client, and the settings of providers of secrets."""

    resources: Mapping[str, Any] = field(default_factory=dict)
    secrets: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> ResourceTables | None:
        """Return the tables of a configuration; None if it has no resources."""
        resources = values.get(RESOURCES)
        return cls(resources, values.get(SECRETS) or {}) if isinstance(resources, Mapping) and resources else None

    def portable(self) -> dict[str, Any]:
        """Return the tables as plain data for another process, without clients that only this process has."""
        return {RESOURCES: {n: t for n, t in self.resources.items() if is_table(t)}, SECRETS: dict(self.secrets)}


def is_table(value: Any) -> bool:
    """Return True for a table of the configuration, False for a ready client."""
    return isinstance(value, Mapping) and KIND in value


def make_python(settings: Mapping[str, Any]) -> Any:
    """Call the factory that `make` names as `module:function`, with the other settings as arguments."""
    path = settings.get("make")
    module, _, name = path.partition(":") if isinstance(path, str) else ("", "", "")
    if not module or not name:
        raise ConfigurationError(f"make: expected 'module:function', got {path!r}")
    factory = getattr(import_module(module), name, None)
    if not callable(factory):
        raise ConfigurationError(f"make: {module} has no function {name!r}")
    return factory(**{key: value for key, value in settings.items() if key != "make"})


def _make_http(settings: Mapping[str, Any]) -> Any:
    from tasker.resources.http import make_http  # needed for resources of this kind only

    return make_http(settings)


INCLUDED: Mapping[str, Make] = {"python": make_python, "http": _make_http}


def refuse_unknown(kind: str, settings: Mapping[str, Any]) -> None:
    """Raise `ConfigurationError` for a key that a table of this kind does not have."""
    if unknown := sorted(settings.keys() - KEYS[kind]):
        message = f"unknown key {unknown[0]!r}"
        raise ConfigurationError(message, hint=f"a resource of the kind {kind} takes {', '.join(sorted(KEYS[kind]))}")


def number_of(settings: Mapping[str, Any], key: str, default: float) -> float:
    """Return a number above 0. Raises `ConfigurationError`."""
    value = settings.get(key, default)
    try:  # a placeholder of the configuration is a text
        number = 0.0 if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = 0.0
    if not 0 < number < inf:
        raise ConfigurationError(f"{key}: expected a number above 0, got {value!r}")
    return number


def flag_of(settings: Mapping[str, Any], key: str, default: bool) -> bool:
    """Return a flag. Raises `ConfigurationError`."""
    value = settings.get(key, default)
    if not isinstance(value, bool):
        raise ConfigurationError(f"{key}: expected true or false, got {value!r}")
    return value


def networks_of(settings: Mapping[str, Any]) -> Sequence[str]:
    """Return the networks that may be reached besides public addresses. Raises `ConfigurationError`."""
    networks: Any = settings.get("private_networks", ())
    if not isinstance(networks, list | tuple):
        raise ConfigurationError(f"private_networks: expected a list, got {networks!r}")
    for network in networks:
        try:
            ip_network(network)
        except ValueError:
            message = f"private_networks: expected a network such as 10.0.0.0/8, got {network!r}"
            raise ConfigurationError(message) from None
    return networks


def revealed(value: Any) -> str:
    """Return the text of a value of the configuration, which may be a secret."""
    return value.reveal() if isinstance(value, Secret) else str(value)


def known_kinds() -> list[str]:
    """Return the names of the included and the installed kinds, sorted."""
    return sorted({*INCLUDED, *(point.name for point in offered(GROUP))})


def factory_of(kind: str) -> Make:
    """Return the factory of a kind. Raises `ConfigurationError`."""
    if (included := INCLUDED.get(kind)) is not None:
        return included
    for point in offered(GROUP):
        if point.name == kind:
            factory: Make = point.load()
            return factory
    raise ConfigurationError(f"unknown kind of resource {kind!r}", hint=f"known kinds: {', '.join(known_kinds())}")


@dataclass(frozen=True, slots=True)
class TableProblem:
    """Problem of a table: its dotted path, the value there, what is wrong, and how to fix it."""

    path: str
    value: Any
    issue: str
    fix: str


def table_problems(values: Mapping[str, Any]) -> Iterator[TableProblem]:
    """Yield the problems of the tables `resources` and `secrets`, without reading a secret or importing a kind."""
    for root in (RESOURCES, SECRETS):
        tables = values.get(root, {})
        for name, table in tables.items() if isinstance(tables, Mapping) else ():
            if not isinstance(table, Mapping):
                yield TableProblem(f"{root}.{name}", table, "Expected a table", f"Write [{root}.{name}]")
            elif root == RESOURCES:
                yield from _problems_of_resource(f"{root}.{name}", table)
            elif name not in known_providers():
                issue = "Unknown provider of secrets"
                yield TableProblem(f"{root}.{name}", table, issue, f"Installed are: {', '.join(known_providers())}")
            else:
                yield from _problems_of_references(f"{root}.{name}", table, tuple(PROVIDERS))


def _problems_of_resource(path: str, table: Mapping[str, Any]) -> Iterator[TableProblem]:
    if table.get(KIND) not in (kinds := known_kinds()):
        fix = f"Write kind = one of: {', '.join(kinds)}"
        yield TableProblem(f"{path}.{KIND}", table.get(KIND), "Expected the kind of the resource", fix)
    if isinstance(kind := table.get(KIND), str) and kind in KEYS:
        fix = f"A resource of the kind {kind} takes {', '.join(sorted(KEYS[kind]))}"
        for key in sorted(table.keys() - KEYS[kind] - {KIND}):
            yield TableProblem(f"{path}.{key}", table[key], "Unknown key", fix)
        for key in (key for key in NEEDED[kind] if key not in table):
            yield TableProblem(path, table, f"`{key}` is missing", f"Write {key} = ...")
    yield from _problems_of_references(path, table)


def _problems_of_references(path: str, table: Mapping[str, Any], only: Collection[str] = ()) -> Iterator[TableProblem]:
    for inside, value in references_in(table):
        place = f"{path}.{inside}" if inside else path
        try:
            reference = reference_in(value)
        except ConfigurationError as error:
            yield TableProblem(place, value[KEY], error.message, f"Write {FORM}")
            continue
        if reference is None:
            yield TableProblem(place, value, "Expected a table with the one key `secret`", f"Write {FORM}")
        elif reference.provider not in (providers := known_providers()):
            fix = f"Installed are: {', '.join(providers)}"
            yield TableProblem(place, value[KEY], "Unknown provider of secrets", fix)
        elif only and reference.provider not in only:
            yield TableProblem(place, value[KEY], "Expected another provider", ONLY_INCLUDED.capitalize())
