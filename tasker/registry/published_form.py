"""Resolvers in the all-methods form: `resolve` may be asynchronous and gets a `ResolutionContext`."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from typing import Any

from tasker.contracts.dataclasses import dataclass
from tasker.registry.base_resolver import BaseResolver
from tasker.registry.handler_definition import HandlerDefinition


@dataclass(frozen=True, slots=True)
class ResolutionContext:
    """Additional argument of a resolver: the step's `initialization`."""

    config: dict[str, Any] = field(default_factory=dict)


def priority_of(resolver: BaseResolver) -> int:
    """Return the resolver's priority, in either form."""
    found: Any = resolver.priority
    return int(found() if callable(found) else found)


def wants(resolver: BaseResolver, definition: HandlerDefinition, config: dict[str, Any] | None) -> bool:
    """Return True if the resolver can try the definition."""
    return resolver.can_resolve(definition) if _published(resolver) else resolver.can_resolve(definition, config)


def answer_of(resolver: BaseResolver, definition: HandlerDefinition, config: dict[str, Any] | None) -> Any | None:
    """Return the resolver's result; an asynchronous one is awaited, since a handler is resolved only once."""
    if not _published(resolver):
        return resolver.resolve(definition, config)
    context: Any = ResolutionContext(dict(config or {}))
    found = resolver.resolve(definition, context)
    return _finished(found) if inspect.isawaitable(found) else found


def _published(resolver: BaseResolver) -> bool:
    return hasattr(resolver, "resolver_name")


def _finished(answer: Awaitable[Any]) -> Any:
    """Run the awaitable in a new event loop in a thread, since a loop may be running in this one."""

    async def wait() -> Any:
        return await answer

    with ThreadPoolExecutor(1, "tasker resolver") as thread:
        return thread.submit(asyncio.run, wait()).result()
