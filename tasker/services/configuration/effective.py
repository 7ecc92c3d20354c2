"""Effective settings of a running server with their sources; secrets are redacted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tasker.contracts.dataclasses import dataclass
from tasker.settings.catalogue import by_path
from tasker.settings.inherited import resolved
from tasker.settings.layering import find
from tasker.settings.live import is_live
from tasker.settings.model import Settings
from tasker.settings.redaction import REDACTED, is_secret
from tasker.settings.toml_text import toml_value

DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class EffectiveSetting:
    """Parameter with its value as TOML, source and meaning; `live` means that a running server applies a change."""

    path: str
    value: str
    set_by: str
    meaning: str
    live: bool

    @property
    def is_set(self) -> bool:
        """True if the value is not the default."""
        return self.set_by != DEFAULT


def effective_settings(settings: Settings, origin: Callable[[str], str]) -> Sequence[EffectiveSetting]:
    """Return every parameter of this version, in the order of the reference."""
    values = resolved(settings).settings.model_dump(mode="json")
    return [
        EffectiveSetting(path, _text(path, find(values, path)), origin(path), each.meaning, is_live(path))
        for path, each in by_path().items()
        if not each.reserved
    ]


def _text(path: str, value: Any) -> str:
    if is_secret(path.rpartition(".")[2], value):
        return REDACTED
    return "" if value is None else toml_value(value)
