"""What a process is set to, and where each value is from, secrets replaced: for whoever looks at a running server."""

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
    """A parameter: its value as TOML, what set it, what it means; `live`: a running server takes a change over."""

    path: str
    value: str
    set_by: str
    meaning: str
    live: bool

    @property
    def is_set(self) -> bool:
        """True when something else than the default counts."""
        return self.set_by != DEFAULT


def effective_settings(settings: Settings, origin: Callable[[str], str]) -> Sequence[EffectiveSetting]:
    """Every parameter that this version has, in the order of the reference."""
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
