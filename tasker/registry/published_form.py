"""Resolvers in the published form: all methods, `resolve` may be asynchronous and gets a `ResolutionContext`."""

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
    """What a resolver gets beside the definition: the step's `initialization`."""

    config: dict[str, Any] = field(default_factory=dict)


def priority_of(resolver: BaseResolver) -> int:
    """The resolver's position, whichever form it has."""
    found: Any = resolver.priority
    return int(found() if callable(found) else found)


def wants(resolver: BaseResolver, definition: HandlerDefinition, config: dict[str, Any] | None) -> bool:
    """True when the resolver wants to try."""
    return resolver.can_resolve(definition) if _published(resolver) else resolver.can_resolve(definition, config)


def answer_of(resolver: BaseResolver, definition: HandlerDefinition, config: dict[str, Any] | None) -> Any | None:
    """What the resolver finds. One that is asynchronous is waited for: a handler is resolved once."""
    if not _published(resolver):
        return resolver.resolve(definition, config)
    context: Any = ResolutionContext(dict(config or {}))
    found = resolver.resolve(definition, context)
    return _finished(found) if inspect.isawaitable(found) else found


def _published(resolver: BaseResolver) -> bool:
    return hasattr(resolver, "resolver_name")


def _finished(answer: Awaitable[Any]) -> Any:
    """In a loop of its own, and a thread, since here one may run."""

    async def wait() -> Any:
        return await answer

    with ThreadPoolExecutor(1, "tasker resolver") as thread:
        return thread.submit(asyncio.run, wait()).result()
