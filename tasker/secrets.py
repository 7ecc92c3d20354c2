"""Secrets in the configuration of a worker: `{secret = "PROVIDER:NAME#FIELD"}`, read when something needs the value.

Providers `env` and `file` are included; others are installed by the entry-point group `tasker.secrets`.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn, Protocol

from tasker.dataclasses import dataclass
from tasker.errors import ConfigurationError
from tasker.installed import offered
from tasker.known_secrets import KNOWN, REDACTED

GROUP = "tasker.secrets"
KEY = "secret"
FORM = '{secret = "PROVIDER:NAME"} or {secret = "PROVIDER:NAME#FIELD"}'


class Secret:
    """Value that `str()`, `repr()` and logs never show. Call `reveal()` only where the value is used."""

    __slots__ = ("_value", "expires_at")

    def __init__(self, value: str, expires_at: datetime | None = None) -> None:
        KNOWN.add(value)
        self._value, self.expires_at = value, expires_at

    def reveal(self) -> str:
        """Return the value."""
        return self._value

    def __eq__(self, other: object) -> bool:
        return self._value == other._value if isinstance(other, Secret) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._value)

    def __repr__(self) -> str:
        return f"Secret({REDACTED})"

    def __str__(self) -> str:
        return REDACTED

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret cannot be pickled")


@dataclass(frozen=True, slots=True)
class SecretReference:
    """Reference to a secret: its provider, its name there, and optionally a field if its value is a JSON object."""

    provider: str
    name: str
    field: str | None = None

    @classmethod
    def parse(cls, text: str) -> SecretReference:
        """Parse `PROVIDER:NAME#FIELD`. Raises `ConfigurationError`."""
        provider, separator, rest = text.partition(":")
        name, _, field = rest.partition("#")
        if not (provider and separator and name):
            raise ConfigurationError(f"invalid reference to a secret {text!r}", hint=f"write {FORM}")
        return cls(provider, name, field or None)

    def __str__(self) -> str:
        return f"{self.provider}:{self.name}" + (f"#{self.field}" if self.field else "")


def reference_in(value: Any) -> SecretReference | None:
    """Return the reference that a value of the configuration is, None for any other value."""
    if isinstance(value, Mapping) and set(value) == {KEY} and isinstance(value[KEY], str):
        return SecretReference.parse(value[KEY])
    return None


def references_in(value: Any, path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield every table with the key `secret` in a value of the configuration, with its path."""
    if isinstance(value, Mapping):
        if KEY in value:
            yield path, value
        for key, item in value.items():
            yield from references_in(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield from references_in(item, f"{path}[{number}]")


class SecretsProvider(Protocol):
    """Source of secrets. A provider's class is called with its table of `[secrets.NAME]`.

    Each access to a key of the table reads the reference in it, if there is one, as a `Secret`.
    """

    def get(self, name: str) -> Secret:
        """Return the current value. Raises `ConfigurationError` if there is none; other errors are retried."""
        ...


class EnvironmentProvider:
    """Secrets in environment variables: `env:NAME`, or the content of the file that `NAME_FILE` names."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        _refuse_settings("env", settings)

    def get(self, name: str) -> Secret:
        """Return the value of the variable."""
        if (file := os.environ.get(f"{name}_FILE")) is not None:
            return Secret(_content(Path(file), f"the file of {name}_FILE"))
        if not (value := os.environ.get(name)):
            raise ConfigurationError(f"the environment variable {name} is not set", hint=f"set {name} or {name}_FILE")
        return Secret(value)


class FileProvider:
    """Secrets in files: `file:PATH`, without the white space around it."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        _refuse_settings("file", settings)

    def get(self, name: str) -> Secret:
        """Return the content of the file."""
        return Secret(_content(Path(name), f"the file {name}"))


def _refuse_settings(name: str, settings: Mapping[str, Any]) -> None:
    if settings:
        raise ConfigurationError(f"the provider {name} has no settings", hint=f"remove [secrets.{name}]")


def _content(path: Path, what: str) -> str:
    try:
        content = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigurationError(f"{what} cannot be read: {why}") from None
    if not content:
        raise ConfigurationError(f"{what} is empty")
    return content


INCLUDED: Mapping[str, Callable[[Mapping[str, Any]], SecretsProvider]] = {
    "env": EnvironmentProvider,
    "file": FileProvider,
}


ONLY_INCLUDED = f"a provider's own secrets come from {' or '.join(INCLUDED)}"


def known_providers() -> list[str]:
    """Return the names of the included and the installed providers, sorted."""
    return sorted({*INCLUDED, *(point.name for point in offered(GROUP))})


class Secrets:
    """Secrets of one process by reference. `tables` are the settings of providers by name (`[secrets.NAME]`)."""

    def __init__(self, tables: Mapping[str, Any] | None = None) -> None:
        self._tables = dict(tables or {})
        self._providers: dict[str, SecretsProvider] = {}
        self._lock = threading.RLock()

    def get(self, reference: SecretReference) -> Secret:
        """Return the current value of a secret. Raises `ConfigurationError`."""
        secret = self._provider(reference.provider).get(reference.name)
        if reference.field is None:
            return secret
        try:
            value = json.loads(secret.reveal())
        except ValueError:
            value = None
        if not isinstance(field := _field(value, reference.field), str | int | float):
            message = f"the secret {reference.provider}:{reference.name} has no field {reference.field!r}"
            raise ConfigurationError(message, hint="expected a JSON object with this field, a text or a number")
        return Secret(str(field), secret.expires_at)

    def resolved(self, value: Any) -> Any:
        """Return a value of the configuration with a `Secret` in place of each reference."""
        if (reference := reference_in(value)) is not None:
            return self.get(reference)
        if isinstance(value, Mapping):
            return {key: self.resolved(item) for key, item in value.items()}
        return [self.resolved(item) for item in value] if isinstance(value, list | tuple) else value

    def _provider(self, name: str) -> SecretsProvider:
        with self._lock:
            if name not in self._providers:
                self._providers[name] = _make(name, ProviderTable(self._tables.get(name, {}), self))
            return self._providers[name]


class ProviderTable(Mapping[str, Any]):
    """Table of a provider. A reference in it is read at each access; it may only name an included provider."""

    def __init__(self, table: Mapping[str, Any], secrets: Secrets) -> None:
        self._table, self._secrets = table, secrets

    def __getitem__(self, key: str) -> Any:
        value = self._table[key]
        if (reference := reference_in(value)) is None:
            return value
        if reference.provider not in INCLUDED:
            raise ConfigurationError(f"{key}: {ONLY_INCLUDED}, got {str(reference)!r}")
        return self._secrets.get(reference)

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)


def _field(value: Any, path: str) -> Any:
    """Return a field of an object; a name with dots that is no field leads into objects. None if there is none."""
    if not isinstance(value, Mapping) or path in value:
        return value.get(path) if isinstance(value, Mapping) else None
    first, dot, rest = path.partition(".")
    return _field(value.get(first), rest) if dot else None


def _make(name: str, settings: Mapping[str, Any]) -> SecretsProvider:
    if (included := INCLUDED.get(name)) is not None:
        return included(settings)
    for point in offered(GROUP):
        if point.name == name:
            made: SecretsProvider = point.load()(settings)
            return made
    raise ConfigurationError(
        f"unknown provider of secrets {name!r}", hint=f"installed providers: {', '.join(known_providers())}"
    )
