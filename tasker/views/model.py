"""Published form of views: what the API sends and clients decode.

A view is a frozen dataclass that services return. It is published under its own name with the names of its fields,
unless `published` says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from tasker.dataclasses import dataclass

T = TypeVar("T")

CAMEL_CASE = "published in CamelCase"
"""Mark of words, as in `Annotated[Literal["manual_dlq"], CAMEL_CASE]`: published as `ManualDlq`."""


@dataclass(frozen=True, slots=True)
class Keys:
    """Mark of a mapping that always has these keys, with the name of its schema."""

    name: str
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PublishedForm:
    """Published name of a view, and of the fields that have another one.

    `derived` are further published names, each with the field or property that has its value. `unpublished` are fields
    that are not sent. Fields in `omitted` are left out while they are None.
    """

    name: str
    aliases: Mapping[str, str]
    derived: Mapping[str, str]
    unpublished: Collection[str] = ()
    omitted: Collection[str] = ()


def published(
    name: str,
    *,
    aliases: Mapping[str, str] | None = None,
    derived: Mapping[str, str] | None = None,
    unpublished: Collection[str] = (),
    omitted: Collection[str] = (),
) -> Callable[[type[T]], type[T]]:
    """Set the published name of a view. `aliases` maps fields to their published names, `derived` further published
    names to fields or properties. `unpublished` fields are not sent: a decoded view has their defaults, unless its
    classmethod `of_published` makes it. Fields in `omitted` are left out while they are None."""

    def decorate(cls: type[T]) -> type[T]:
        cast(Any, cls).__published__ = PublishedForm(name, aliases or {}, derived or {}, unpublished, omitted)
        return cls

    return decorate


def published_form(view: Any) -> PublishedForm:
    """Return the published names of a view."""
    form: PublishedForm = vars(view).get("__published__") or PublishedForm(view.__name__, {}, {})
    return form


def published_fields(view: Any) -> Iterator[tuple[str, str, Any]]:
    """Yield each published attribute of a view with its published name and its type."""
    hints, form = _hints(view), published_form(view)
    for field in fields(view):
        if field.name not in form.unpublished:
            yield field.name, form.aliases.get(field.name, field.name), hints[field.name]
    for name, attribute in form.derived.items():
        value = getattr(view, attribute)
        yield attribute, name, _hints(value.fget)["return"] if isinstance(value, property) else hints[attribute]


@cache
def _hints(kind: Any) -> Mapping[str, Any]:
    return get_type_hints(kind, include_extras=True)


def without_none(kind: Any) -> tuple[Any, bool]:
    """Return the type without None, and whether None was one of its values."""
    options = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    some = [option for option in options if option is not NoneType]
    return (some[0] if len(some) == 1 else kind), len(some) < len(options)


def without_marks(kind: Any) -> Any:
    """Return the type without the marks of `Annotated`."""
    return kind.__origin__ if get_origin(kind) is Annotated else kind


def is_camel_case(kind: Any) -> bool:
    """Return whether values of this type are words that are published in CamelCase."""
    return get_origin(kind) is Annotated and CAMEL_CASE in kind.__metadata__


def camel_case(word: str) -> str:
    """Return the published spelling: `ManualDlq` for `manual_dlq`."""
    return "".join(part.capitalize() for part in word.split("_"))


def snake_case(word: str) -> str:
    """Return the spelling of the database: `manual_dlq` for `ManualDlq`, which may already have it."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in word).lstrip("_")


def encode(kind: Any, value: Any) -> Any:
    """Return the published form of a value of this type: views as objects with published names and words."""
    encoder = _encoder(kind)
    return value if encoder is None else encoder(value)


Encoder = Callable[[Any], Any]


@cache
def _encoder(kind: Any) -> Encoder | None:
    """Return the function that encodes values of this type; None if they are published as they are."""
    kind, optional = without_none(kind)
    encoder = _encoder_of_some(kind)
    if encoder is None or not optional:
        return encoder
    return lambda value: None if value is None else encoder(value)


def _encoder_of_some(kind: Any) -> Encoder | None:
    if is_camel_case(kind):
        return camel_case
    kind = without_marks(kind)
    if is_dataclass(kind):
        return _view_encoder(kind)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Sequence, list, tuple) and (item := _encoder(arguments[0])):
        return lambda value: [item(element) for element in value]
    if origin in (Mapping, dict) and (member := _encoder(arguments[1])):
        return lambda value: {name: member(element) for name, element in value.items()}
    return None


def _view_encoder(view: Any) -> Encoder | None:
    parts = [(name, public, _encoder(kind)) for name, public, kind in published_fields(view)]
    form = published_form(view)
    is_plain = all(name == public and encoder is None for name, public, encoder in parts)
    if is_plain and not (form.derived or form.unpublished or form.omitted):
        return None

    def encoded(value: Any) -> dict[str, Any]:
        return {
            public: encoder(getattr(value, name)) if encoder else getattr(value, name)
            for name, public, encoder in parts
        }

    def shortened(value: Any) -> dict[str, Any]:
        entries = encoded(value)
        return {public: entry for public, entry in entries.items() if entry is not None or public not in form.omitted}

    return shortened if form.omitted else encoded


def decode(kind: Any, data: Any) -> Any:
    """Return the value of this type for its published form. Unknown entries are ignored; an entry that is missing is
    the default of its field, or None.

    Raises `KeyError`, `TypeError`, `ValueError` or `AttributeError` if the data does not have that form.
    """
    kind, _ = without_none(kind)
    if data is None:
        return None
    if is_camel_case(kind):
        return snake_case(data)
    kind = without_marks(kind)
    if kind is datetime:
        return datetime.fromisoformat(data)
    if is_dataclass(kind):
        return _decoded_view(kind, data)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Sequence, list, tuple) and arguments[0] is not Any:
        items = [decode(arguments[0], item) for item in data]
        return tuple(items) if origin is tuple else items
    if origin is Mapping and is_dataclass(arguments[1]):
        return {name: decode(arguments[1], value) for name, value in data.items()}
    return data


def _decoded_view(view: Any, data: Mapping[str, Any]) -> Any:
    hints, aliases = _hints(view), published_form(view).aliases
    values = {}
    for field in fields(view):
        name, kind = aliases.get(field.name, field.name), hints[field.name]
        if name in data:
            values[field.name] = decode(kind, data[name])
        elif field.default is MISSING and field.default_factory is MISSING:
            values[field.name] = None if without_none(kind)[1] else data[name]
    return getattr(view, "of_published", view)(**values)


def from_row(kind: type[T], row: Mapping[str, Any], **more: Any) -> T:
    """Return the view of a document of the database, which has its fields under their names; `more` has others.

    Times are ISO 8601 in the document. Other entries are ignored; a field without an entry is its default, or None.
    """
    values = {}
    columns: Sequence[tuple[str, bool, bool]] = _columns(cast(Any, kind))
    for name, is_time, is_required in columns:
        if name in more:
            values[name] = more[name]
        elif name in row:
            value = row[name]
            values[name] = datetime.fromisoformat(value) if is_time and value is not None else value
        elif is_required:
            values[name] = None
    return kind(**values)


@cache
def _columns(kind: Any) -> Sequence[tuple[str, bool, bool]]:
    """Return the fields of a view, each with whether it is a time, and whether it has no default."""
    hints = _hints(kind)
    return [
        (
            field.name,
            without_none(hints[field.name])[0] is datetime,
            field.default is MISSING and field.default_factory is MISSING,
        )
        for field in fields(kind)
    ]
