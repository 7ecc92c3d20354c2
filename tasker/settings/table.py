"""Building blocks of settings tables: a strict base class, one function per kind of value, validated texts.

The engine's own settings use them, and so does the table that a messaging backend declares with `settings_table()`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any, get_args, get_origin
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from tasker.settings.addresses import ENCODE_URL, is_clear_url


class Substituted(str):
    """Text from a `${...}` placeholder: only such text is accepted for a number, a boolean or a list."""

    __slots__ = ()


class Table(BaseModel):
    """One TOML table. Unknown keys and wrong types are errors; `model_fields_set` contains the keys that were set."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, allow_inf_nan=False, protected_namespaces=(), defer_build=True
    )

    @model_validator(mode="before")
    @classmethod
    def _read_placeholders(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        kinds = {name: field.annotation for name, field in cls.model_fields.items()}
        return {key: _typed(value, kinds.get(key)) for key, value in data.items()}


def _typed(value: Any, kind: Any) -> Any:
    if get_origin(kind) is tuple:
        item = get_args(kind)[0]
        entries = _entries(value)
        return [_typed(entry, getattr(item, "__origin__", item)) for entry in entries] if entries is not None else value
    if not isinstance(value, Substituted):
        return value
    try:
        return _PARSERS[kind](value) if kind in _PARSERS else str(value)
    except (KeyError, ValueError):
        return str(value)  # validation reports the error


def _entries(value: Any) -> list[Any] | None:
    """Return the entries of a list; a placeholder's text is split at commas."""
    if isinstance(value, Substituted):
        return [Substituted(part.strip()) for part in value.split(",") if part.strip()]
    return value if isinstance(value, list) else None


_PARSERS: dict[Any, Any] = {int: int, float: float, bool: lambda text: {"true": True, "false": False}[text.lower()]}


def whole(default: int, low: int, high: int, meaning: str, **notes: Any) -> Any:
    """Declare an integer from `low` to `high`.

    `notes` of this and the other kinds: `advice`, further explanation; `variable`, the environment variable that
    supplies the value if no file does; `overrules`, the path of the common setting that this setting of a backend's
    table overrides while that backend is chosen (it has the same kind and range).
    """
    return Field(default, ge=low, le=high, description=meaning, json_schema_extra=notes)


def number(default: float, low: float, high: float, meaning: str, **notes: Any) -> Any:
    """Declare a number from `low` to `high`."""
    return Field(default, ge=low, le=high, description=meaning, json_schema_extra=notes)


def flag(default: bool, meaning: str, **notes: Any) -> Any:
    """Declare a boolean."""
    return Field(default, description=meaning, json_schema_extra=notes)


def text(default: str, meaning: str, *, shortest: int = 1, **notes: Any) -> Any:
    """Declare a text of at least `shortest` characters."""
    return Field(default, min_length=shortest, description=meaning, json_schema_extra=notes)


def choice(default: str, meaning: str, **notes: Any) -> Any:
    """Declare one of the values that the annotation lists."""
    return Field(default, description=meaning, json_schema_extra=notes)


def several(default: tuple[Any, ...], meaning: str, **notes: Any) -> Any:
    """Declare a list, which replaces the list of a lower layer completely."""
    return Field(default, description=meaning, json_schema_extra=notes, strict=False)


def table(kind: type[Table], **notes: Any) -> Any:
    """Declare a nested table."""
    return Field(default_factory=kind, json_schema_extra=notes)


def refused(issue: str, fix: str) -> PydanticCustomError:
    """Return the error for a text's validator to raise: issue and fix, both beginning with a capital letter."""
    return PydanticCustomError("form", "{issue}", {"issue": issue, "fix": fix})


def url_of(*schemes: str, separator: str | None = None) -> AfterValidator:
    """Validate a URL, or several of them between separators: all but the first may omit the scheme."""

    def check(value: str) -> str:
        if not _begins_with(schemes, value):
            names = " or ".join(f"{name}://" for name in schemes)
            raise refused(f"Expected a URL that begins with {names}", "Write the whole URL")
        if not all(map(is_clear_url, value.split(separator) if separator else [value])):
            raise unclear(ENCODE_URL)
        return value

    return AfterValidator(check)


def unclear(fix: str) -> PydanticCustomError:
    """Return the error for a URL in which the end of the password is ambiguous."""
    return refused("The URL cannot be parsed", f"{fix[:1].upper()}{fix[1:]}")


def _begins_with(schemes: Sequence[str], value: str) -> bool:
    with suppress(ValueError):  # an unbalanced bracket raises
        parts = urlsplit(value)
        return parts.scheme in schemes and bool(parts.netloc or (parts.scheme == "unix" and parts.path))
    return False


def _name_prefix(value: str) -> str:
    if re.fullmatch(r"[A-Za-z0-9_]+", value, re.ASCII):
        return value
    raise refused("Contains a character other than letters, digits and '_'", "Use A-Z a-z 0-9 _")


NamePrefix = Annotated[str, AfterValidator(_name_prefix)]
"""First part of names on a server that several databases share."""
