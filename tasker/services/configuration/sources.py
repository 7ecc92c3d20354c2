"""Sources of the configuration: TOML files and environment variables, each a layer."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tasker.dataclasses import dataclass
from tasker.errors import ConfigurationError
from tasker.settings.catalogue import parameters, single_process
from tasker.settings.check import SettingProblem
from tasker.settings.nested import deep_merge, find, leaves, nested
from tasker.settings.refused_keys import REFUSED
from tasker.settings.sources import ALIASES, canonical, line_of
from tasker.settings.table import Substituted

CONTEXTS = ("common", "orchestration", "worker", "complete")
ENVIRONMENTS = ("development", "test", "production")
ROOTS = ("common", "hooks", "limits", "orchestration", "plugins", "resources", "secrets", "tenants", "worker")
OPTIONAL_ROOTS = ("hooks", "limits", "plugins", "resources", "secrets", "tenants")
"""Roots whose base file may be missing."""
SOURCE_DIR = Path("config/tasker")
SHARED_WITH_WORKERS = (
    "orchestration.batch_processing",
    "orchestration.decision_points",
    "orchestration.dlq",
    "orchestration.event_systems.task_readiness",
    "orchestration.shutdown_timeout_ms",
)
"""Parameters that workers need too, since they advance tasks themselves, sweep, and have the same stop limit."""
ABOVE_FILES = ("common.database.url",)
"""Parameters whose variable overrides every file: one `DATABASE_URL` names the database for all local processes."""


@dataclass(frozen=True)
class ConfigurationLayer:
    """Values from one source. `name` is the file or a description; `text` is the file's content."""

    name: str
    tables: Mapping[str, Any]
    text: str = ""
    problems: tuple[SettingProblem, ...] = field(default=())
    changed_at: datetime | None = None
    """When the file was last written."""

    def place_of(self, path: str) -> str | None:
        """Return `FILE:LINE` of a dotted path set by this layer, or None."""
        if find(self.tables, path.partition("[")[0]) is None:
            return None
        older = next((older for older, present in ALIASES.items() if path.startswith(present)), None)
        lines = [line_of(self.text, spelling) for spelling in (path, older) if spelling]
        line = max((number for number in lines if number), default=None)
        return f"{self.name}:{line}" if line else self.name


def read_layer(file: Path) -> ConfigurationLayer:
    """Read a TOML file as a layer. Raises `ConfigurationError` with the location if it cannot be read."""
    try:
        text = file.read_text(encoding="utf-8")
        changed_at = datetime.fromtimestamp(file.stat().st_mtime, UTC)
    except OSError as error:
        raise ConfigurationError(f"the configuration file {file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"the configuration file {file} is not UTF-8: {error.reason}") from None
    try:
        tables, problems = canonical(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"the configuration file {file} is not TOML: {error}") from None
    return ConfigurationLayer(str(file), tables, text, tuple(problems), changed_at)


def source_layers(context: str, environment: str, source_dir: Path) -> list[ConfigurationLayer]:
    """Return the base files of a context, each followed by that of the environment.

    Raises `ConfigurationError` if the base files or the environment do not exist.
    """
    if not (source_dir / "base").is_dir():
        raise ConfigurationError(
            f"no configuration found in {source_dir}: no folder {source_dir / 'base'}",
            hint=f"create one: tasker config init{option(source_dir)}",
        )
    folder = source_dir / "environments" / environment
    if not folder.is_dir():
        names = ", ".join(sorted(path.name for path in folder.parent.glob("*") if path.is_dir())) or "none"
        raise ConfigurationError(f"unknown environment {environment!r} in {folder.parent}; it has: {names}")
    return [layer for root in _roots_of(context) for layer in _layers_of(root, context, source_dir, folder)]


def option(source_dir: Path) -> str:
    """Return the command option that names the source folder, or "" for the default one."""
    return "" if source_dir == SOURCE_DIR else f" --source-dir {source_dir}"


def _roots_of(context: str) -> tuple[str, ...]:
    others = {"common": ("common",), "orchestration": tuple(root for root in ROOTS if root != "worker")}
    return others.get(context, ROOTS)


def _layers_of(root: str, context: str, source_dir: Path, folder: Path) -> list[ConfigurationLayer]:
    files = [source_dir / "base" / f"{root}.toml", folder / f"{root}.toml"]
    needed = None if root in OPTIONAL_ROOTS else files[0]
    layers = [_only(root, read_layer(file)) for file in files if file is needed or file.exists()]
    if root == "orchestration" and context == "worker":
        return [_picked(layer, SHARED_WITH_WORKERS) for layer in layers]
    return layers


def _only(root: str, layer: ConfigurationLayer) -> ConfigurationLayer:
    """Keep the table that the file is named after and report all others as problems."""
    strangers = [
        SettingProblem(
            key,
            value,
            f"This file holds [{root}...] only",
            REFUSED.get(key) or (f"Move it to {key}.toml" if key in ROOTS else f"Did you mean {root}.{key}?"),
            layer.place_of(key),
        )
        for key, value in layer.tables.items()
        if key != root
    ]
    tables = {key: value for key, value in layer.tables.items() if key == root}
    return ConfigurationLayer(layer.name, tables, layer.text, (*layer.problems, *strangers), layer.changed_at)


def _picked(layer: ConfigurationLayer, paths: tuple[str, ...]) -> ConfigurationLayer:
    values = {path: value for path in paths if (value := find(layer.tables, path)) is not None}
    return ConfigurationLayer(layer.name, nested(values), layer.text, layer.problems, layer.changed_at)


class Variables:
    """Environment variables. `NAME_FILE` names a file with the value of `NAME`, for mounted secrets."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    def __call__(self, name: str) -> str | None:
        """Return the value, or None if it is not set. Raises `ConfigurationError` for a file that cannot be read."""
        file = self._environ.get(f"{name}_FILE")
        if file is None:
            return self._environ.get(name)
        if name in self._environ:
            raise ConfigurationError(f"{name} and {name}_FILE are both set", hint="set one of them")
        try:
            return Path(file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"the file {file} that {name}_FILE names cannot be read: {error}") from None

    def described(self, name: str) -> str:
        """Return the variable's description, including the file if the value comes from one."""
        file = self._environ.get(f"{name}_FILE")
        return f"environment variable {name}" + (f"_FILE, file {file}" if file else "")


def variable_layers(variables: Variables, *, above_files: bool) -> list[ConfigurationLayer]:
    """Return one layer per environment variable set for a parameter, for those above or below the files."""
    layers = []
    for parameter in (candidate for candidate in parameters() if not candidate.reserved):
        if (parameter.path in ABOVE_FILES) is not above_files:
            continue
        name = next((name for name in parameter.variables if variables(name)), None)
        if name is not None:
            value = Substituted(variables(name))
            layers.append(ConfigurationLayer(variables.described(name), nested({parameter.path: value})))
    return layers


def single_process_layer() -> ConfigurationLayer:
    """Return the defaults of `tasker run`, `tasker dev` and `App`."""
    return ConfigurationLayer("default for a single process", nested(single_process()))


def merged(layers: list[ConfigurationLayer]) -> dict[str, Any]:
    """Merge the layers; later ones override earlier ones."""
    tables: dict[str, Any] = {}
    for layer in layers:
        tables = deep_merge(tables, layer.tables)
    return tables


def names_of(layers: list[ConfigurationLayer]) -> str:
    """Return the names of the non-empty layers, in order."""
    return ", ".join(layer.name for layer in layers if any(True for _ in leaves(layer.tables))) or "defaults alone"
