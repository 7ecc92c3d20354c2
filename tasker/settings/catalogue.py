"""All parameters, read from the model, and which of them apply while a process runs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from tasker.dataclasses import dataclass
from tasker.settings.installed_tables import settings_model
from tasker.settings.model import Settings
from tasker.settings.nested import covering
from tasker.settings.refused_keys import REFUSED, RESERVED
from tasker.settings.single_process import SINGLE_PROCESS

_KINDS = {int: "whole number", float: "number", bool: "true or false", str: "text"}


@dataclass(frozen=True, slots=True)
class Parameter:
    """Parameter. `variables` are the environment variables that supply its value if no file does, in order of
    precedence.

    `reserved` names the part that this version does not have and for which the parameter is refused. `single_process`
    is the default of `tasker run`, `tasker dev` and `App` if it differs. `overrules` is the path of the common setting
    that this setting of a backend's table overrides while that backend is chosen.
    """

    path: str
    kind: str
    default: Any
    meaning: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    advice: str | None = None
    variables: tuple[str, ...] = ()
    table: str = ""
    reserved: str | None = None
    single_process: Any = None
    overrules: str | None = None

    @property
    def name(self) -> str:
        """Last part of the path."""
        return self.path.rpartition(".")[2]

    @property
    def range(self) -> str:
        """Allowed values in words."""
        if self.choices:
            return " | ".join(self.choices)
        return f"{_plain(self.low)} to {_plain(self.high)}" if self.low is not None else self.kind

    @property
    def related(self) -> tuple[str, ...]:
        """Other parameters of its table."""
        above = self.path.rpartition(".")[0]
        return tuple(
            parameter.path
            for parameter in parameters()
            if parameter.path.rpartition(".")[0] == above and parameter != self
        )


def parameters() -> tuple[Parameter, ...]:
    """Return all parameters in the order of the model, including those of the installed messaging backends."""
    return tuple(by_path().values())


def by_path() -> dict[str, Parameter]:
    """Return all parameters by dotted path."""
    return _by_path(settings_model())


def tables() -> dict[str, str]:
    """Return the meaning of every table by dotted path."""
    return _meanings(settings_model())


def accepted() -> list[str]:
    """Return the paths of all parameters and tables that a file may set."""
    paths = [*by_path(), *tables()]
    return [path for path in paths if covering(path, RESERVED) is None and covering(path, REFUSED) is None]


@cache
def _by_path(model: type[Settings]) -> dict[str, Parameter]:
    return {parameter.path: parameter for parameter in _walk(model, "")}


@cache
def _meanings(model: type[Settings]) -> dict[str, str]:
    return dict(_tables(model, ""))


def _walk(model: type[BaseModel], prefix: str) -> Iterator[Parameter]:
    for name, field in model.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from _walk(inner, f"{prefix}{name}.")
        else:
            yield _parameter(f"{prefix}{name}", field, (model.__doc__ or "").strip())


def _tables(model: type[BaseModel], prefix: str) -> Iterator[tuple[str, str]]:
    for name, field in model.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield f"{prefix}{name}", (inner.__doc__ or "").strip()
            yield from _tables(inner, f"{prefix}{name}.")


def _parameter(path: str, field: FieldInfo, table: str) -> Parameter:
    notes = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
    kind = field.annotation
    choices = get_args(kind) if get_origin(kind) is Literal else ()
    variable: Any = notes.get("variable") or ()
    return Parameter(
        path=path,
        kind="list" if get_origin(kind) is tuple else _KINDS.get(kind, "text"),  # type: ignore[arg-type]
        default=field.get_default(call_default_factory=False),
        meaning=field.description or "",
        low=_bound(field, "ge"),
        high=_bound(field, "le"),
        choices=choices,
        advice=str(notes["advice"]) if "advice" in notes else None,
        variables=(variable,) if isinstance(variable, str) else tuple(variable),
        table=table,
        reserved=covering(path, RESERVED),
        single_process=SINGLE_PROCESS.get(path),
        overrules=str(notes["overrules"]) if "overrules" in notes else None,
    )


def _bound(field: FieldInfo, name: str) -> float | None:
    return next((getattr(item, name) for item in field.metadata if hasattr(item, name)), None)


def _plain(value: float | None) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


LIVE = (
    "common.circuit_breakers",
    "common.database.listen_url",
    "common.queues.poll_interval_ms",
    "orchestration.event_systems.orchestration",
    "orchestration.web.auth",
    "worker.circuit_breakers",
    "worker.event_systems.worker",
    "worker.execution.error_rules",
    "worker.web.auth",
)
"""Prefixes of their paths."""
NOT_LIVE = (
    "worker.event_systems.worker.metadata.fallback_poller.supported_namespaces",
    "worker.event_systems.worker.metadata.in_process_events.deduplication_cache_size",
    *(f"{process}.web.auth.{key}" for process in ("orchestration", "worker") for key in ("enabled", "api_key_header")),
)
"""Exceptions: served namespaces, the size of the event cache and authentication are fixed at the start."""


def is_live(path: str) -> bool:
    """Return whether a running process applies the parameter; a backend's setting follows the one that it overrides."""
    parameter = by_path().get(path)
    path = (parameter.overrules if parameter else None) or path
    return _below(path, LIVE) and not _below(path, NOT_LIVE)


def _below(path: str, beginnings: tuple[str, ...]) -> bool:
    return any(path == beginning or path.startswith(f"{beginning}.") for beginning in beginnings)
