"""Configuration of a process: found, merged and checked, with the source of each value.

At run time one merged file is read, named by `TASKER_CONFIG_PATH` or found below `TASKER_CONFIG_ROOT`. The commands
that create and check such files read the folders `base` and `environments` instead.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from tasker.dataclasses import dataclass
from tasker.errors import ConfigurationError
from tasker.plugins.found import exclude_plugins
from tasker.resources.tables import RESOURCES, SECRETS, ResourceTables, table_problems
from tasker.services.configuration.installed_checks import (
    BACKEND_TABLE,
    CHOSEN,
    backend_problems,
    backend_tables,
    choice_problems,
    is_of_absent_plugin,
    plugin_problems,
    switched_off,
    unread_tables,
)
from tasker.services.configuration.sources import (
    CONTEXTS,
    SOURCE_DIR,
    ConfigurationLayer,
    Variables,
    merged,
    names_of,
    option,
    read_layer,
    single_process_layer,
    source_layers,
    variable_layers,
)
from tasker.services.configuration.warnings import made_for_others, overridden_variables
from tasker.settings.addresses import BackendSettings
from tasker.settings.catalogue import set_paths
from tasker.settings.check import SettingProblem, check, render
from tasker.settings.execution import Execution
from tasker.settings.inherited import Resolved, resolved
from tasker.settings.model import Settings
from tasker.settings.nested import deep_merge, find, leaves, nested, without
from tasker.settings.sources import Substitution, has_unset, variables_in, without_unset
from tasker.settings.toml_text import toml_text

PATH_VARIABLE, ROOT_VARIABLE, ENVIRONMENT_VARIABLE = "TASKER_CONFIG_PATH", "TASKER_CONFIG_ROOT", "TASKER_ENV"
NEITHER_IS_SET = (
    "Neither TASKER_CONFIG_PATH nor TASKER_CONFIG_ROOT is set.\n"
    "For Docker/production: set TASKER_CONFIG_PATH to the merged config file.\n"
    "For tests/development: set TASKER_CONFIG_ROOT to the config directory."
)
_log = logging.getLogger("tasker.configuration")


class ConfigurationInvalid(ConfigurationError):
    """Error of a configuration with `problems`; `usable` is the configuration without the invalid settings."""

    def __init__(self, problems: tuple[SettingProblem, ...], usable: Configuration) -> None:
        super().__init__(render(problems))
        self.problems, self.usable = problems, usable

    def concerning(self, path: str) -> SettingProblem | None:
        """Return the problem of this exact setting, or None."""
        return next((problem for problem in self.problems if problem.path.partition("[")[0] == path), None)

    def details(self) -> Mapping[str, Any]:
        """Return the problems as plain values."""
        return {"problems": [problem.to_dict() for problem in self.problems]}


@dataclass(frozen=True)
class Configuration:
    """Checked settings with their sources. `layers` are in ascending order of precedence."""

    context: str
    environment: str
    settings: Settings
    layers: tuple[ConfigurationLayer, ...]
    variables: Variables
    backends: Mapping[str, BackendSettings] = field(default_factory=dict)
    """Tables of messaging backends without a settings model, by backend."""

    free: Mapping[str, Any] = field(default_factory=dict)
    """Tables whose names the user chooses: `resources` and `secrets`."""

    written: Mapping[str, Any] = field(default_factory=dict)
    """Texts with placeholders, by path, that replace values (see `comparable`)."""

    @cached_property
    def effective(self) -> Resolved:
        """Settings as processes use them, with inherited values filled in."""
        return resolved(self.settings)

    def origin(self, path: str) -> str:
        """Return the source of a value, or of the value it inherits: `FILE:LINE`, a variable, or `default`."""
        if source := self.effective.taken_from.get(path):
            return f"{self.origin(source)}, through {source}"
        for layer in reversed(self.layers):
            if (place := layer.place_of(path)) is not None:
                return place + self._through(find(layer.tables, path))
        return "default"

    def values(self) -> dict[str, Any]:
        """Return all effective values as nested mappings, including the tables of backends without a model."""
        return {**deep_merge(self.effective.settings.to_dict(), nested({BACKEND_TABLE: self.backends})), **self.free}

    @property
    def resources(self) -> ResourceTables | None:
        """Resources of a worker; None without any."""
        return ResourceTables.of(self.free)

    @property
    def changed_at(self) -> datetime | None:
        """Time at which the newest of its files was last written; None without files."""
        return max((layer.changed_at for layer in self.layers if layer.changed_at is not None), default=None)

    def value(self, path: str) -> Any:
        """Return the value of a parameter, or a table as nested mappings."""
        return find(self.values(), path)

    def is_set(self, path: str) -> bool:
        """Return True if any layer sets the parameter, even to its default."""
        return self.origin(path) != "default"

    def _through(self, written: Any) -> str:
        """Return the variables from which the placeholders of a file's text took their values."""
        texts = written if isinstance(written, list) else [written]
        names = [name for text in texts for name, _ in variables_in(text) if self.variables(name)]
        return "".join(f", {self.variables.described(name)}" for name in dict.fromkeys(names))


def load(context: str, environ: Mapping[str, str] = os.environ) -> Configuration:
    """Load the configuration that a process starts with. `context` is `orchestration`, `worker` or `complete`.

    `complete` is for a single process that does everything: it uses the defaults of a single process and needs no file.
    Raises `ConfigurationError` if no file is named or it cannot be read, `ConfigurationInvalid` if it has problems.
    """
    environment = environ.get(ENVIRONMENT_VARIABLE) or Execution.environment
    file = run_time_file(context, environment, environ)
    if file is None and context != "complete":
        generate = f"tasker config generate --context {context} --environment {environment}"
        raise ConfigurationError(
            NEITHER_IS_SET, hint=f"create the file with: {generate}; or start with the defaults: --no-config"
        )
    configuration = assemble(context, environment, [read_layer(file)] if file else [], environ)
    for warning in made_for_others(configuration.layers, context, environ.get(ENVIRONMENT_VARIABLE)):
        _log.warning("%s", warning)
    for _, line in overridden_variables(configuration):
        _log.info("%s", line)
    return configuration


def run_time_file(context: str, environment: str, environ: Mapping[str, str]) -> Path | None:
    """Return the merged file named by the environment, or None. Raises `ConfigurationError` if it does not exist."""
    if path := environ.get(PATH_VARIABLE):
        _log.info("Loading %s configuration from: %s (source: %s)", context, path, PATH_VARIABLE)
        return _existing([Path(path)], PATH_VARIABLE)
    root = environ.get(ROOT_VARIABLE)
    if not root:
        return None
    file = _existing(_places(root, context, environment), ROOT_VARIABLE)
    _require_current(file)
    _log.info("Using convention-based config path: %s (environment=%s)", file, environment)
    _log.info("Loading %s configuration from: %s (source: %s (convention))", context, file, ROOT_VARIABLE)
    return file


def conventional_files(environment: str, environ: Mapping[str, str]) -> list[str]:
    """Return the contexts that have a file below `TASKER_CONFIG_ROOT`."""
    root = environ[ROOT_VARIABLE]
    return [
        context for context in CONTEXTS if any(file.is_file() for file in _conventional(root, context, environment))
    ]


def ungenerated_sources(environment: str, environ: Mapping[str, str]) -> Path | None:
    """Return the source folder below `TASKER_CONFIG_ROOT` if no file was generated from it for the environment yet."""
    if environ.get(PATH_VARIABLE) or not (root := environ.get(ROOT_VARIABLE)):
        return None
    source_dir = Path(root, "tasker")
    return source_dir if (source_dir / "base").is_dir() and not conventional_files(environment, environ) else None


def _require_current(file: Path) -> None:
    """Raise `ConfigurationError` for a generated file that differs from its sources, if these are beside it."""
    source_dir = file.parent.parent
    context, _, environment = file.stem.partition("-")
    folders = (source_dir / "base", source_dir / "environments" / environment)
    if file.parent.name != "generated" or not all(folder.is_dir() for folder in folders):
        return
    sources = source_layers(context, environment, source_dir)
    then, now = (dict(leaves(merged(layers))) for layers in ([read_layer(file)], sources))
    changed = [path for path in dict.fromkeys([*then, *now]) if then.get(path) != now.get(path)]
    if changed:
        more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
        raise ConfigurationError(
            f"{file} is out of date with its sources in {source_dir}; different: {', '.join(changed[:3])}{more}",
            hint=f"generate it again: tasker config generate --context {context} --environment {environment}"
            f"{option(source_dir)}; or name another file in {PATH_VARIABLE}",
        )


def _places(root: str, context: str, environment: str) -> list[Path]:
    """Return the possible paths of the file.

    A single process also reads files of other contexts, because the settings it needs are common to them.
    """
    paths = _conventional(root, context, environment)
    if context != "complete" or any(place.is_file() for place in paths):
        return paths
    others = [
        place
        for other_context in ("worker", "orchestration")
        for place in _conventional(root, other_context, environment)
    ]
    return [place for place in others if place.is_file()] or paths


def _conventional(root: str, context: str, environment: str) -> list[Path]:
    name = f"{context}-{environment}.toml"
    return [Path(root, "tasker", "generated", name), Path(root, "tasker", name)]


def _existing(places: list[Path], variable: str) -> Path:
    for place in places:
        if place.is_file():
            return place
    paths = " or ".join(map(str, places))
    missing = "is a folder, expected a file" if any(place.is_dir() for place in places) else "does not exist"
    raise ConfigurationError(
        f"the configuration file {paths} {missing} ({variable})",
        hint="create it with: tasker config generate --context CONTEXT --environment ENVIRONMENT",
    )


def from_sources(
    context: str, environment: str, source_dir: Path = SOURCE_DIR, environ: Mapping[str, str] = os.environ
) -> Configuration:
    """Load the configuration directly from `base` and `environments`, for the commands. Raises the errors of `load`."""
    return assemble(context, environment, source_layers(context, environment, source_dir), environ)


def assemble(
    context: str, environment: str, files: list[ConfigurationLayer], environ: Mapping[str, str]
) -> Configuration:
    """Merge and check the layers: defaults, variables, files, `ABOVE_FILES`. Raises `ConfigurationInvalid`."""
    variables = Variables(environ)
    exclude_plugins(switched_off(files, variables))
    defaults = [single_process_layer()] if context == "complete" else []
    below, above = (variable_layers(variables, above_files=is_above) for is_above in (False, True))
    layers = [*defaults, *below, *files, *above]
    _log.debug("configuration layers, last one on top: %s", names_of(layers))
    substitution = Substitution(variables)
    values = substitution.tables(merged(layers))
    backends = backend_tables(values)
    usable, problems = _checked(values, backends, layers, substitution, merged(files))
    free = {root: values[root] for root in (RESOURCES, SECRETS) if isinstance(values.get(root), Mapping)}
    configuration = Configuration(context, environment, usable, tuple(layers), variables, backends, free)
    if problems:
        _log.debug("configuration refused: %d problems", len(problems))
        raise ConfigurationInvalid(problems, configuration)
    return configuration


def _checked(
    values: dict[str, Any],
    backends: Mapping[str, BackendSettings],
    layers: list[ConfigurationLayer],
    substitution: Substitution,
    written: Mapping[str, Any],
) -> tuple[Settings, tuple[SettingProblem, ...]]:
    def place_of(path: str) -> str | None:
        return next(filter(None, (layer.place_of(path) for layer in reversed(layers))), None)

    broken = frozenset(problem.path.partition("[")[0] for problem in substitution.problems)
    whole = without(values, broken)
    unchecked = frozenset(f"{BACKEND_TABLE}.{name}" for name in backends) | unread_tables(whole) | {RESOURCES, SECRETS}
    result = check(without(whole, unchecked), place_of)
    unplaced = [SettingProblem(p.path, p.value, p.issue, p.fix, place_of(p.path)) for p in substitution.problems]
    installed_problems = [*choice_problems(whole, place_of), *backend_problems(backends, place_of)]
    installed_problems += plugin_problems(result.usable, written, place_of)
    for problem in table_problems(whole):
        found = SettingProblem(problem.path, problem.value, problem.issue, problem.fix, place_of(problem.path))
        installed_problems.append(found)
    return result.usable, (
        *(p for layer in layers for p in layer.problems),
        *unplaced,
        *result.problems,
        *installed_problems,
    )


def generate(context: str, environment: str, source_dir: Path, environ: Mapping[str, str], now: datetime) -> str:
    """Return the merged file of a context as text; placeholders are kept, so it contains no secret.

    Not checked are values that need a variable not set here, the backend's name, and plugins not installed here: their
    packages may exist only where the file is used. Raises the errors of `from_sources`.
    """
    files = source_layers(context, environment, source_dir)
    known, unset = _known_here(files, environ)
    unchosen = [replace(layer, tables=without(layer.tables, frozenset({CHOSEN}))) for layer in known]
    try:
        assemble(context, environment, unchosen, environ)
    except ConfigurationInvalid as error:
        incomplete = {path.rpartition(".")[0] for path in unset}
        here = [
            problem
            for problem in error.problems
            if not is_of_absent_plugin(problem) and not {problem.path, problem.path.rpartition(".")[0]} & incomplete
        ]
        if here:
            raise ConfigurationInvalid(tuple(here), error.usable) from None
    return _header(context, environment, source_dir, now) + toml_text(merged(files))


def _known_here(
    files: list[ConfigurationLayer], environ: Mapping[str, str]
) -> tuple[list[ConfigurationLayer], dict[str, Any]]:
    """Return the layers without values that need an unset variable, and these values as written, by dotted path."""
    variables = Variables(environ)
    unset = {path: value for path, value in leaves(merged(files)) if has_unset(value, variables)}
    return [replace(layer, tables=without_unset(layer.tables, variables)) for layer in files], unset


def comparable(
    context: str, environment: str, files: list[ConfigurationLayer], environ: Mapping[str, str] = os.environ
) -> Configuration:
    """Assemble a configuration for comparison; values that need an unset variable stay as written.

    Raises `ConfigurationInvalid`.
    """
    known, unset = _known_here(files, environ)
    return replace(assemble(context, environment, known, environ), written=unset)


def _header(context: str, environment: str, source_dir: Path, now: datetime) -> str:
    name = "*" if context == "complete" else context
    return (
        "# Generated by Tasker Configuration System\n"
        f"# Context: {context}\n"
        f"# Environment: {environment}\n"
        f"# Generated At: {now:%Y-%m-%dT%H:%M:%SZ}\n"
        f"# Base Config: {source_dir}/base/{name}.toml\n"
        f"# Environment Override: {source_dir}/environments/{environment}/{name}.toml\n"
        "#\n"
        "# This is a merged configuration file combining base settings with\n"
        "# environment-specific overrides. Environment values take precedence.\n\n"
    )


def all_differences(one: Configuration, other: Configuration) -> list[tuple[str, Any, Any]]:
    """Return the `differences` of the settings, then those of messaging backends' tables without a model."""
    left, right = (
        dict(leaves(deep_merge(configuration.values(), nested(configuration.written))))
        for configuration in (one, other)
    )
    comparisons = [(path, left.get(path), right.get(path)) for path in dict.fromkeys([*left, *right])]
    return [comparison for comparison in comparisons if comparison[1] != comparison[2]]


def differences(one: Settings, other: Settings) -> Iterator[tuple[str, Any, Any]]:
    """Return (path, value in `one`, value in `other`) of every parameter that differs, inherited values included."""
    left, right = (resolved(settings).settings.to_dict() for settings in (one, other))
    pairs = ((path, find(left, path), find(right, path)) for path, _ in set_paths(left, right))
    return ((path, before, after) for path, before, after in pairs if before != after)
