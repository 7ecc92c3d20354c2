"""Definition of the code that runs a step, as written in the template."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from tasker.contracts.dataclasses import dataclass
from tasker.contracts.plan import HandlerRef
from tasker.errors import ConfigurationError

DEFAULT_METHOD = "call"


@dataclass
class HandlerDefinition:
    """Handler of a step as written in the template.

    `callable` locates the handler, `handler_method` names its method, `resolver` the resolver to use; `initialization`
    is the step's configuration.
    """

    callable: str
    handler_method: str | None = None
    resolver: str | None = None
    initialization: dict[str, Any] = field(default_factory=dict)

    def effective_method(self) -> str:
        """Return the method to call: `call` unless the template names another."""
        return self.handler_method or DEFAULT_METHOD

    @property
    def method(self) -> str:
        """Method to call; see `effective_method`."""
        return self.effective_method()

    def uses_method_dispatch(self) -> bool:
        """Return True if the method is not `call`."""
        return self.effective_method() != DEFAULT_METHOD

    def has_resolver_hint(self) -> bool:
        """Return True if the template names a resolver."""
        return bool(self.resolver)

    @classmethod
    def from_callable(cls, callable_str: str) -> HandlerDefinition:
        """Return the definition for a bare callable (the short form)."""
        return cls(callable=callable_str)

    @classmethod
    def from_dict(cls, data: dict[str, Any] | None) -> HandlerDefinition:
        """Return the definition for a mapping (the long form).

        `method` is an alias of `handler_method`. Raises `ConfigurationError` without a callable.
        """
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
        """Return the definition of a compiled step."""
        return cls(handler.callable, handler.method, handler.resolver, dict(handler.initialization))
