"""The configuration of a process: found, merged, checked, and able to say where each value is from.

At run time one merged file is read, named by `TASKER_CONFIG_PATH` or found below `TASKER_CONFIG_ROOT` (C-148). The
commands that make and check such files read the folders `base` and `environments` instead.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from tasker.contracts.messaging import BackendSettings
from tasker.errors import ConfigurationError
from tasker.services.backend_tables import CHOSEN, TABLE, backend_problems, backend_tables, choice_problems
from tasker.services.configuration_sources import (
    CONTEXTS,
    SOURCE_DIR,
    Layer,
    Variables,
    merged,
    names_of,
    read_layer,
    single_process_layer,
    source_layers,
    variable_layers,
)
from tasker.services.configuration_warnings import made_for_others
from tasker.settings.catalogue import by_path
from tasker.settings.check import check
from tasker.settings.layering import deep_merge, find, leaves, nested, without
from tasker.settings.model import Settings
from tasker.settings.problems import Problem, render
from tasker.settings.substitution import Substitution, has_unset, variables_in
from tasker.settings.toml_text import toml_text

PATH_VARIABLE, ROOT_VARIABLE, ENVIRONMENT_VARIABLE = "TASKER_CONFIG_PATH", "TASKER_CONFIG_ROOT", "TASKER_ENV"
NEITHER_IS_SET = (
    "Neither TASKER_CONFIG_PATH nor TASKER_CONFIG_ROOT is set.\n"
    "For Docker/production: set TASKER_CONFIG_PATH to the merged config file.\n"
    "For tests/development: set TASKER_CONFIG_ROOT to the config directory."
)
_log = logging.getLogger("tasker.configuration")


class ConfigurationInvalid(ConfigurationError):
    """The configuration has problems; `problems` holds all of them."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__(render(problems))
        self.problems = problems

    def details(self) -> Mapping[str, Any]:
        """The problems as plain data."""
        return {"problems": [problem.to_dict() for problem in self.problems]}


@dataclass(frozen=True)
class Configuration:
    """Checked settings with where they are from. `layers` are in order, the last one on top."""

    context: str
    environment: str
    settings: Settings
    layers: tuple[Layer, ...]
    variables: Variables
    backends: Mapping[str, BackendSettings] = field(default_factory=dict)
    """Tables of messaging backends that the settings have no model for, by the backend's name."""

    def origin(self, path: str) -> str:
        """`FILE:LINE`, the environment variable, or `default`: what set the value."""
        for layer in reversed(self.layers):
            if (place := layer.place_of(path)) is not None:
                return place + self._through(find(layer.tables, path))
        return "default"

    def values(self) -> dict[str, Any]:
        """Everything in effect as nested values, the tables of backends without a model too."""
        return deep_merge(self.settings.model_dump(mode="json"), nested({TABLE: self.backends}))

    def value(self, path: str) -> Any:
        """The value of a parameter, or of a table as nested values."""
        return find(self.values(), path)

    def is_set(self, path: str) -> bool:
        """True when some layer sets the parameter, be it to its default."""
        return self.origin(path) != "default"

    def _through(self, written: Any) -> str:
        """Which variables the text of a file took its value from."""
        texts = written if isinstance(written, list) else [written]
        found = [name for text in texts for name, _ in variables_in(text) if self.variables(name)]
        return "".join(f", {self.variables.described(name)}" for name in dict.fromkeys(found))


def load(context: str, environ: Mapping[str, str] = os.environ) -> Configuration:
    """The configuration that a process starts with. `context` is `orchestration`, `worker` or `complete`.

    `complete` is for one process that does everything: it takes the defaults of a single process, and needs no file.
    Raises `ConfigurationError` when no file is named or it cannot be read, `ConfigurationInvalid` when it has problems.
    """
    environment = environ.get(ENVIRONMENT_VARIABLE) or "development"
    file = run_time_file(context, environment, environ)
    if file is None and context != "complete":
        generate = f"tasker config generate --context {context} --environment {environment}"
        raise ConfigurationError(
            NEITHER_IS_SET, hint=f"make the file with: {generate}; or start with the defaults: --no-config"
        )
    found = assemble(context, environment, [read_layer(file)] if file else [], environ)
    for warning in made_for_others(found.layers, context, environ.get(ENVIRONMENT_VARIABLE)):
        _log.warning("%s", warning)
    return found


def run_time_file(context: str, environment: str, environ: Mapping[str, str]) -> Path | None:
    """The merged file that the environment names; None without one. Raises `ConfigurationError` when it is missing."""
    if path := environ.get(PATH_VARIABLE):
        _log.info("Loading %s configuration from: %s (source: %s)", context, path, PATH_VARIABLE)
        return _existing([Path(path)], PATH_VARIABLE)
    root = environ.get(ROOT_VARIABLE)
    if not root:
        return None
    file = _existing(_conventional(root, context, environment), ROOT_VARIABLE)
    _log.info("Using convention-based config path: %s (environment=%s)", file, environment)
    _log.info("Loading %s configuration from: %s (source: %s (convention))", context, file, ROOT_VARIABLE)
    return file


def conventional_files(environment: str, environ: Mapping[str, str]) -> list[str]:
    """The contexts for which there is a file below `TASKER_CONFIG_ROOT`."""
    root = environ[ROOT_VARIABLE]
    return [each for each in CONTEXTS if any(file.is_file() for file in _conventional(root, each, environment))]


def _conventional(root: str, context: str, environment: str) -> list[Path]:
    name = f"{context}-{environment}.toml"
    return [Path(root, "tasker", "generated", name), Path(root, "tasker", name)]


def _existing(places: list[Path], variable: str) -> Path:
    for place in places:
        if place.is_file():
            return place
    looked = " or ".join(map(str, places))
    raise ConfigurationError(
        f"the configuration file {looked} does not exist ({variable})",
        hint="write it with: tasker config generate --context CONTEXT --environment ENVIRONMENT",
    )


def from_sources(
    context: str, environment: str, source_dir: Path = SOURCE_DIR, environ: Mapping[str, str] = os.environ
) -> Configuration:
    """The configuration straight from `base` and `environments`, as the commands show it. Raises like `load`."""
    return assemble(context, environment, source_layers(context, environment, source_dir), environ)


def assemble(context: str, environment: str, files: list[Layer], environ: Mapping[str, str]) -> Configuration:
    """Layers, placeholders, checks: defaults, variables, files, `ABOVE_FILES`. Raises `ConfigurationInvalid`."""
    variables = Variables(environ)
    defaults = [single_process_layer()] if context == "complete" else []
    below, above = (variable_layers(variables, above_files=each) for each in (False, True))
    layers = [*defaults, *below, *files, *above]
    _log.debug("configuration layers, last one on top: %s", names_of(layers))
    substitution = Substitution(variables)
    values = substitution.tables(merged(layers))
    backends = backend_tables(values)
    settings = _checked(values, backends, layers, substitution)
    return Configuration(context, environment, settings, tuple(layers), variables, backends)


def _checked(
    values: dict[str, Any], backends: Mapping[str, BackendSettings], layers: list[Layer], substitution: Substitution
) -> Settings:
    def place_of(path: str) -> str | None:
        return next(filter(None, (layer.place_of(path) for layer in reversed(layers))), None)

    broken = frozenset(problem.path.partition("[")[0] for problem in substitution.problems)
    whole = without(values, broken)
    result = check(without(whole, frozenset(f"{TABLE}.{name}" for name in backends)), place_of)
    unplaced = [Problem(p.path, p.value, p.issue, p.fix, place_of(p.path)) for p in substitution.problems]
    own = [*choice_problems(whole, place_of), *backend_problems(backends, place_of)]
    problems = (*(p for layer in layers for p in layer.problems), *unplaced, *result.problems, *own)
    if problems or result.settings is None:
        _log.debug("configuration refused: %d problems", len(problems))
        raise ConfigurationInvalid(problems)
    return result.settings


def generate(context: str, environment: str, source_dir: Path, environ: Mapping[str, str], now: datetime) -> str:
    """The merged file of a context as text: placeholders stay as they are, so that it holds no secret (C-150, C-154).

    What needs a variable that is not set here is left out of the check, and so is the backend's name: its package may
    be installed only where the file is used. Raises like `from_sources`.
    """
    files = source_layers(context, environment, source_dir)
    tables, variables = merged(files), Variables(environ)
    unset = frozenset(path for path, value in leaves(tables) if has_unset(value, variables))
    unchecked = unset | {CHOSEN}
    known = [Layer(each.name, without(each.tables, unchecked), each.text, each.problems) for each in files]
    assemble(context, environment, known, environ)
    return _header(context, environment, source_dir, now) + toml_text(tables)


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
    """`differences` of the settings, and then those in the tables of messaging backends without a model."""
    left, right = (dict(leaves(each.backends, f"{TABLE}.")) for each in (one, other))
    rest = [(path, left.get(path), right.get(path)) for path in sorted({*left, *right})]
    return [*differences(one.settings, other.settings), *(each for each in rest if each[1] != each[2])]


def differences(one: Settings, other: Settings) -> Iterator[tuple[str, Any, Any]]:
    """(path, value in one, value in the other) of every parameter that differs."""
    left, right = (dict(leaves(each.model_dump(mode="json"))) for each in (one, other))
    return ((path, left[path], right[path]) for path in by_path() if left[path] != right[path])
