"""Rules that name errors, by exception class, error code, HTTP status or SQLSTATE, and those of a configuration."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Protocol

from tasker.dataclasses import dataclass

FORM = '"NAMESPACE never ERROR..." or "NAMESPACE/TEMPLATE retry ERROR..."; * is every namespace'
VERBS = {"never": False, "retry": True}
EXPECTED = "an exception class, an error code, an HTTP status such as 404 or 5xx, or a SQLSTATE such as sqlstate:40"
_NAME = re.compile(r"[A-Za-z_][\w.\-]{0,199}")
_STATUS = re.compile(r"[1-5](\d\d|xx)")
_SQLSTATE = re.compile(r"sqlstate:([0-9A-Z]{2}|[0-9A-Z]{5})")


class ErrorFacts(Protocol):
    """Facts of a failure that a rule may name."""

    @property
    def error_type(self) -> str: ...
    @property
    def error_code(self) -> str | None: ...
    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def http_status(self) -> int | None: ...
    @property
    def sqlstate(self) -> str | None: ...


def parse_rule(value: object) -> str:
    """Return a rule in its one spelling. Raises `ValueError` if the value names no error."""
    text = str(value).strip() if isinstance(value, str | int) and not isinstance(value, bool) else ""
    if re.match(r"sqlstate\b", text, re.IGNORECASE):
        text = re.sub(r"(?i)^sqlstate[: ]*", "sqlstate:", text)
        text = "sqlstate:" + text[9:].upper()
        if _SQLSTATE.fullmatch(text):
            return text
        raise ValueError(f"expected a SQLSTATE of five characters or its class of two, got {str(value)[:40]!r}")
    if text[:1].isdigit():
        if _STATUS.fullmatch(text.lower()):
            return text.lower()
        raise ValueError(f"expected an HTTP status from 100 to 599 or a class such as 5xx, got {text[:40]!r}")
    if _NAME.fullmatch(text):
        return text
    raise ValueError(f"expected {EXPECTED}, got {str(value)[:40]!r}")


def matching(rules: Iterable[str], error: ErrorFacts) -> str | None:
    """Return the first rule that names the error, or None.

    A class names its subclasses too, with or without its module.
    """
    return next((rule for rule in rules if _names(rule, error)), None)


def _names(rule: str, error: ErrorFacts) -> bool:
    if rule.startswith("sqlstate:"):
        return (error.sqlstate or "").startswith(rule[9:])
    if rule[0].isdigit():
        status = str(error.http_status or "")
        return status == rule or (rule.endswith("xx") and status[:1] == rule[0])
    return rule in (error.error_type, error.error_code) or rule in error.names


@dataclass(frozen=True, slots=True)
class ErrorOverride:
    """Rule of a configuration: whether steps are retried after this error, whatever their template says."""

    error: str
    retry: bool
    namespace: str | None = None
    template: str | None = None

    def applies_to(self, namespace: str, template: str) -> bool:
        """Return whether the rule is for the steps of this template."""
        return self.namespace in (None, namespace) and self.template in (None, template)


def parse_overrides(*lines: str) -> tuple[ErrorOverride, ...]:
    """Parse lines like `payments never card_declined 404`. Raises `ValueError` that describes the problem."""
    return tuple(override for line in lines for override in _overrides(line))


def _overrides(line: str) -> Iterator[ErrorOverride]:
    words = line.split()
    target, verb, errors = "".join(words[:1]), "".join(words[1:2]), words[2:]
    namespace, slash, template = target.partition("/")
    if not namespace or target in VERBS or (slash and not template) or (slash and namespace == "*"):
        raise ValueError("Names no namespace")
    if verb not in VERBS:
        raise ValueError(f"Expected never or retry after {target}, got {verb!r:.40}")
    if not errors:
        raise ValueError("Names no error")
    of = None if namespace == "*" else namespace
    yield from (ErrorOverride(parse_rule(error), VERBS[verb], of, template or None) for error in errors)
