"""Which code runs a step, as the template says it."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from tasker.contracts.dataclasses import dataclass
from tasker.contracts.plan import HandlerRef
from tasker.errors import ConfigurationError

DEFAULT_METHOD = "call"


@dataclass
class HandlerDefinition:
    """`callable` says where, `handler_method` which entry, `resolver` how; `initialization` is the step's config."""

    callable: str
    handler_method: str | None = None
    resolver: str | None = None
    initialization: dict[str, Any] = field(default_factory=dict)

    def effective_method(self) -> str:
        """The method to call: `call` unless the template names one."""
        return self.handler_method or DEFAULT_METHOD

    @property
    def method(self) -> str:
        """The same as `effective_method()`."""
        return self.effective_method()

    def uses_method_dispatch(self) -> bool:
        """True when the method is another than `call`."""
        return self.effective_method() != DEFAULT_METHOD

    def has_resolver_hint(self) -> bool:
        """True when the template names a resolver."""
        return bool(self.resolver)

    @classmethod
    def from_callable(cls, callable_str: str) -> HandlerDefinition:
        """The short form: a bare callable."""
        return cls(callable=callable_str)

    @classmethod
    def from_dict(cls, data: dict[str, Any] | None) -> HandlerDefinition:
        """The long form; `method` and `handler_method` are the same. Raises `ConfigurationError` without a callable."""
        values = data or {}
        if not values.get("callable"):
            raise ConfigurationError(f"a handler needs a callable, found {data!r}", hint="write {callable: my_handler}")
        return cls(
            callable=values["callable"],
            handler_method=values.get("handler_method") or values.get("method"),
            resolver=values.get("resolver"),
            initialization=dict(values.get("initialization") or {}),
        )

    @classmethod
    def from_plan(cls, handler: HandlerRef) -> HandlerDefinition:
        """The definition of a compiled step."""
        return cls(handler.callable, handler.method, handler.resolver, dict(handler.initialization))
