"""Replacement of sensitive values: `x-sensitive` in schemas, and secrets in settings.

`$ref` is followed inside a schema, and every branch of `allOf`, `anyOf`, `oneOf` and `if` applies: in doubt, a value is
hidden.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

from tasker import known_secrets
from tasker.template.plan import Plan

REDACTED = known_secrets.REDACTED
"""Replacement of redacted values."""


PATTERNS = (
    "password", "secret", "token", "key", "api_key", "private_key", "jwt_private_key", "jwt_public_key", "auth_token",
    "credentials", "database_url", "dsn", "url", "headers",
)  # fmt: skip
"""Fragments that mark a key as secret, regardless of case: hiding harmless values is better than showing a secret."""


def is_secret(key: str, value: Any) -> bool:
    """Return whether a value under this key must be hidden. Empty text and booleans reveal nothing."""
    if value is None or value == "" or isinstance(value, bool):
        return False
    lowered = key.lower()
    return any(pattern in lowered for pattern in PATTERNS)


def redacted(tables: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return a copy with the secrets replaced, and their sorted dotted paths."""
    paths: list[str] = []
    copy = _table(tables, "", paths)
    return copy, sorted(paths)


def _table(table: Mapping[str, Any], prefix: str, paths: list[str]) -> dict[str, Any]:
    return {key: _value(key, value, f"{prefix}{key}", paths) for key, value in table.items()}


def _value(key: str, value: Any, path: str, paths: list[str]) -> Any:
    if isinstance(value, Mapping) and set(value) == {"secret"}:  # a reference, which names the secret only
        return dict(value)
    if isinstance(value, Mapping):
        return _table(value, f"{path}.", paths)
    if isinstance(value, (list, tuple)):
        return [_value(key, item, f"{path}[{index}]", paths) for index, item in enumerate(value)]
    if not is_secret(key, value):
        return value
    paths.append(path)
    return REDACTED


_HOST = r"(?:\[[^\[\]@?/]*\]|[^\[\]:,@?/]*)(?::\d*)?"
_DATABASE_URL = re.compile(
    rf"(?P<scheme>\w[\w+.-]*://)(?:(?P<user>[^:@/]*)(?P<password>:[^@/]*)?@)?"
    rf"(?P<where>{_HOST}(?:,{_HOST})*(?:/[^@?]*)?)(?:\?(?P<query>.*))?",
    re.DOTALL,
)
"""Database URL as libpq parses it. A URL that libpq would parse differently than meant (a raw `@` or `/` in a password)
does not match, because a part of the password would be read as host, port or database.
"""


ENCODE = "percent-encode special characters of user and password: % as %25, @ as %40, / as %2F, : as %3A"
"""Hint for a URL that cannot be parsed unambiguously."""


def is_clear(url: str) -> bool:
    """Return whether a database URL is unambiguous, so that no part of a password is read as another part."""
    return _DATABASE_URL.fullmatch(url) is not None and not re.search(r"%(?![0-9A-Fa-f]{2})", url)


def without_password(url: str) -> str:
    """Return a database URL with `***` for its secrets, for messages that must name the server.

    Only the scheme remains of an ambiguous URL. Never raises.
    """
    match = _DATABASE_URL.fullmatch(url)
    if match is None:
        scheme = re.match(r"\w[\w+.-]*://", url)
        return f"{scheme[0] if scheme else ''}***" if url else ""
    user = "" if match["user"] is None else f"{match['user']}{':***' if match['password'] else ''}@"
    query = "" if match["query"] is None else "?" + "&".join(map(_shown_option, match["query"].split("&")))
    return f"{match['scheme']}{user}{match['where']}{query}"


def _shown_option(option: str) -> str:
    name, separator, value = option.partition("=")
    if not separator:
        return "***" if option else ""  # the rest of a value that contains a raw `&`
    return f"{name}=***" if is_secret(unquote(name), value) else option


MARK = "x-sensitive"
BRANCHES, ALTERNATIVES = ("if", "then", "else"), ("allOf", "anyOf", "oneOf")
SHORTEST_TEXT = 4
"""Minimum length of texts that are replaced in messages: shorter ones would match everywhere."""
MOST_SECRETS = 100
"""Maximum number of values that are replaced in texts: above it, messages about failures are redacted completely, and
other texts if they contain a sensitive value."""
LONGEST_SEARCHED = 10_000
"""Maximum length of texts that are searched for more than `most` values; longer ones are redacted completely."""
IDENTIFIER = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""An identifier contains a short number by chance only, and an answer without its identifiers is of no use."""
MESSAGES = frozenset(
    (
        "message",
        "last_error",
        "error",
        "failures",
        "traceback",
        "metadata",
        "reason",
        "cancel_reason",
        "reasons",
        "sentence",
        "fields",
    )
)
"""Keys of messages about failures, written by people and handlers."""
HARMLESS = frozenset(("at", "worker", "error_type", "error_code", "step", "name"))
"""Keys in messages whose values are no messages: redacted as any other text."""
CODES = frozenset(("error_type", "error_code"))
"""Keys of codes that programs and people act on: shown, unless the code itself is a sensitive value."""
Schema = Mapping[str, Any]


@lru_cache(maxsize=256)
def has_sensitive(plan: Plan) -> bool:
    """Return whether any schema of the template marks a value as sensitive."""
    return any(marks(schema) for schema in (plan.input_schema, *(step.result_schema for step in plan.steps)))


def names_of_marked(plan: Plan) -> Collection[str] | None:
    """Return the steps whose results may be sensitive; None if steps created at run time are among them."""
    marked = [step for step in plan.steps if marks(step.result_schema)]
    return [step.name for step in marked] if all(step.static for step in marked) else None


class Redactor:
    """Redactor of one task's sensitive values, taken from its `context` and its `results` by step.

    In texts, such as a failure's message, only the sensitive values are replaced. If there are more than `most` values,
    messages are replaced as a whole, and so is every other text that contains one of the values.
    """

    def __init__(
        self, plan: Plan, context: Any = None, results: Mapping[str, Any] | None = None, most: int = MOST_SECRETS
    ) -> None:
        self._input = plan.input_schema if marks(plan.input_schema) else None
        self._marked = {step.name: step.result_schema for step in plan.steps if marks(step.result_schema)}
        self._names = frozenset(step.name for step in plan.steps)
        self._dynamic = [
            self._marked[step.name] for step in plan.steps if not step.static and step.name in self._marked
        ]
        secrets: set[str] = set()
        redact_by_schema(self._input, context, secrets)
        known = results or {}
        for name in known:
            for schema in self._schemas(name):  # skips results without marks: a step may be below thousands of them
                redact_by_schema(schema, known[name], secrets)
        self._mute = len(secrets) > most
        self._secrets = frozenset(secret for secret in secrets if len(secret) >= SHORTEST_TEXT)
        self._lengths = _lengths_by_beginning(self._secrets) if self._mute else {}

    def redact(self, answer: Any) -> Any:
        """Redact data about the task: its `context`, the `result` or `results` of objects that have the `name` or
        `step_name` of a step, and texts. Dataclasses keep their type.
        """
        if isinstance(answer, Mapping):
            return {key: self._member(answer, key, value) for key, value in answer.items()}
        if isinstance(answer, list | tuple):
            return type(answer)([self.redact(item) for item in answer])
        if type(answer) is str:  # a `StrEnum` (the name of a state) is left as it is
            return self._text(answer)
        if is_dataclass(answer) and not isinstance(answer, type):
            return self._view(answer, self.redact)
        return answer

    def _view(self, view: Any, redact: Callable[[Any], Any]) -> Any:
        """Redact a dataclass, which may do it itself (`redacted_by`)."""
        if hasattr(view, "redacted_by"):
            return view.redacted_by(redact)
        return replace(view, **redact({field.name: getattr(view, field.name) for field in fields(view)}))

    def context(self, value: Any) -> Any:
        """Redact the task's input."""
        return self.redact(redact_by_schema(self._input, value, set()))

    def result(self, step: str, value: Any) -> Any:
        """Redact the result of a step."""
        for schema in self._schemas(step):
            value = redact_by_schema(schema, value, set())
        return self.redact(value)

    def _member(self, owner: Mapping[str, Any], key: str, value: Any) -> Any:
        if key in CODES and isinstance(value, str):
            return REDACTED if value in self._secrets else value
        step = owner.get("step_name") or owner.get("name")
        if key == "context" and "task_uuid" in owner:
            return self.context(value)
        if key in ("result", "results") and isinstance(step, str):
            return self.result(step, value)
        return self._muted(value) if self._mute and key in MESSAGES else self.redact(value)

    def _muted(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {
                key: self._member(value, key, member) if key in HARMLESS else self._muted(member)
                for key, member in value.items()
            }
        if isinstance(value, list | tuple):
            return [self._muted(item) for item in value]
        if is_dataclass(value) and not isinstance(value, type):
            return self._view(value, self._muted)
        return REDACTED if isinstance(value, str) else value

    def _text(self, text: str) -> str:
        if not self._mute:
            return _without(self._secrets, text)
        return REDACTED if self._may_contain_secret(text) else text

    def _may_contain_secret(self, text: str) -> bool:
        """Search for all values in one pass: one search per value would take too long."""
        if text in self._secrets or len(text) > LONGEST_SEARCHED:
            return True
        if IDENTIFIER.fullmatch(text):
            return False
        return any(
            text[start : start + length] in self._secrets
            for start in range(len(text) - SHORTEST_TEXT + 1)
            for length in self._lengths.get(text[start : start + SHORTEST_TEXT], ())
        )

    def _schemas(self, name: str) -> Sequence[Schema | None]:
        """Return the schemas that apply to a step; for an instance, those of all dynamic steps."""
        if name in self._names:
            return [self._marked[name]] if name in self._marked else []
        return self._dynamic


def _lengths_by_beginning(secrets: Iterable[str]) -> Mapping[str, Collection[int]]:
    lengths: dict[str, set[int]] = {}
    for secret in secrets:
        lengths.setdefault(secret[:SHORTEST_TEXT], set()).add(len(secret))
    return lengths


def without_messages(value: Any) -> Any:
    """Redact the messages in data or a view about failures, since they may contain anything."""
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **without_messages({field.name: getattr(value, field.name) for field in fields(value)}))
    if isinstance(value, Mapping):
        return {key: REDACTED if key == "message" else without_messages(member) for key, member in value.items()}
    return [without_messages(item) for item in value] if isinstance(value, list | tuple) else value


def without_secrets(message: str, schema: Schema, value: Any) -> str:
    """Redact the sensitive values of `value`, by its schema, in a message about it."""
    secrets: set[str] = set()
    redact_by_schema(schema, value, secrets)
    return _without(secrets, message)


def _without(secrets: Collection[str], text: str) -> str:
    """Replace each of the secrets in the text, the longest first."""
    matches = sorted((secret for secret in secrets if secret and secret in text), key=len, reverse=True)
    return re.sub("|".join(map(re.escape, matches)), REDACTED, text) if matches else text


def marks(schema: Any) -> bool:
    """Return whether the schema marks any value."""
    if isinstance(schema, Mapping):
        return MARK in schema or any(map(marks, schema.values()))
    return isinstance(schema, list | tuple) and any(map(marks, schema))


def redact_by_schema(schema: Schema | None, value: Any, secrets: set[str] | None = None) -> Any:
    """Return the value with sensitive parts replaced; their texts are added to `secrets`."""
    known = set() if secrets is None else secrets

    def redact(value: Any, place: str, schemas: Sequence[Schema]) -> str:
        known.update(texts_of(value))
        return REDACTED

    return replace_sensitive(schema, value, redact)


Replace = Callable[[Any, str, Sequence[Schema]], Any]
"""Returns what stands for a sensitive value, given the value, its place and the schemas that apply to it."""


def replace_sensitive(schema: Schema | None, value: Any, replace: Replace, place: str = "") -> Any:
    """Return the value with each sensitive part replaced by what `replace` returns; `place` is that of the value."""
    if schema is None or not marks(schema):
        return value
    return _replaced([schema], schema, value, replace, place)


def _replaced(schemas: Sequence[Any], root: Schema, value: Any, replace: Replace, place: str) -> Any:
    every = list(_expanded(schemas, root, set()))
    if any(schema.get(MARK, False) is not False for schema in every):
        return replace(value, place, every)
    if not every:
        return value
    if isinstance(value, Mapping):
        return {
            key: _replaced([*_of_property(every, key)], root, item, replace, f"{place}.{key}")
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [
            _replaced([*_of_item(every, index)], root, item, replace, f"{place}[]") for index, item in enumerate(value)
        ]
    return value


def _expanded(schemas: Iterable[Any], root: Schema, seen: set[int]) -> Iterator[Schema]:
    """Yield these schemas and all others that apply to the same value."""
    for schema in schemas:
        if not isinstance(schema, Mapping) or id(schema) in seen:
            continue
        seen.add(id(schema))
        yield schema
        inner = [schema.get(name) for name in BRANCHES]
        inner += [alternative for name in ALTERNATIVES for alternative in schema.get(name) or ()]
        inner += [*(schema.get("dependentSchemas") or {}).values(), _referred(schema.get("$ref"), root)]
        yield from _expanded(inner, root, seen)


def _referred(reference: Any, root: Schema) -> Any:
    """Return the target of a `$ref` into the same schema, or None for any other reference."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    target: Any = root
    for part in reference[1:].split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        target = target.get(name) if isinstance(target, Mapping) else None
    return target


def _of_property(schemas: Iterable[Schema], name: str) -> Iterator[Any]:
    for schema in schemas:
        properties = schema.get("properties") or {}
        if name in properties:
            yield properties[name]
        else:  # always included: matching a pattern against a name could take forever
            yield from (schema.get("patternProperties") or {}).values()
            yield schema.get("additionalProperties")
        yield schema.get("unevaluatedProperties")


def _of_item(schemas: Iterable[Schema], index: int) -> Iterator[Any]:
    for schema in schemas:
        first = schema.get("prefixItems") or ()
        yield first[index] if index < len(first) else schema.get("items")
        yield schema.get("contains")
        yield schema.get("unevaluatedItems")


def texts_of(value: Any) -> Iterator[str]:
    """Yield the texts and numbers in a value, as texts."""
    if isinstance(value, Mapping):
        for item in value.values():
            yield from texts_of(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from texts_of(item)
    elif value is not None and not isinstance(value, bool):
        yield str(value)
