"""Whether what a filter names exists: an empty list says nothing about a name that was mistyped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from tasker.errors import NotPermitted, UsageError

if TYPE_CHECKING:
    from tasker.cli.place.fleet import PlanService

Found = TypeVar("Found", bound=Sequence[object])


class HasPlans(Protocol):
    """A fleet."""

    @property
    def plans(self) -> PlanService:
        """Its templates."""
        ...


async def require_known_filter(
    app: HasPlans, found: Found, namespace: str | None, template: str | None = None
) -> Found:
    """What was found by these filters. Raises `UsageError` where that is nothing, and no template has such a name.

    Who may not list templates is told nothing about them.
    """
    if found or not (namespace or template):
        return found
    from tasker.services.authoring.targets import MOST_NAMES
    from tasker.services.engine.plans import TemplateFilter

    try:
        if await app.plans.registered(TemplateFilter(namespace, template), limit=1):
            return found
        if namespace is not None and not await app.plans.registered(TemplateFilter(namespace), limit=1):
            known = await app.plans.registered(limit=MOST_NAMES)
            require("namespace", namespace, {each["namespace"] for each in known})
        known = await app.plans.registered(TemplateFilter(namespace), limit=MOST_NAMES)
    except NotPermitted:
        return found
    require("template", template or "", {each["name"] for each in known})
    return found


def require(what: str, name: str, known: set[str]) -> None:
    """Raises `UsageError` with what it resembles for a name that is not known."""
    from tasker.template.diagnostics import did_you_mean

    if name not in known:
        hint = did_you_mean(name, sorted(known)) or "see `tasker template list`"
        raise UsageError(f"there is no {what} {name!r}", hint=hint)
