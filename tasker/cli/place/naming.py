"""Check that the names in a filter exist, so that a mistyped name is not mistaken for an empty result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from tasker.errors import NotPermitted, UsageError

if TYPE_CHECKING:
    from tasker.cli.place.fleet import PlanService

Found = TypeVar("Found", bound=Sequence[object])


class HasPlans(Protocol):
    """Fleet with templates."""

    @property
    def plans(self) -> PlanService:
        """Registered templates of the fleet."""
        ...


async def require_known_filter(
    app: HasPlans, found: Found, namespace: str | None, template: str | None = None
) -> Found:
    """Return the result of a query; raise `UsageError` if it is empty and a name in its filter does not exist.

    A caller who may not list templates gets no such error.
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
    """Raise `UsageError` with similar names for an unknown name."""
    from tasker.template.diagnostics import did_you_mean

    if name not in known:
        hint = did_you_mean(name, sorted(known)) or "see `tasker template list`"
        raise UsageError(f"there is no {what} {name!r}", hint=hint)
