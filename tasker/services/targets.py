"""What a submission may name: a template file, a folder, or a registered template."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tasker.contracts.plan import Plan
from tasker.errors import UsageError


class RegisteredName(NamedTuple):
    """A template in the database; `version` None is the one registered last."""

    namespace: str
    name: str
    version: str | None


def registered_name(target: str) -> RegisteredName:
    """The parts of `namespace/name[:version]`. Raises `UsageError` for anything else: a path that is not there."""
    namespace, separator, rest = target.partition("/")
    if not separator or "/" in rest or rest.endswith((".yaml", ".yml")):
        raise UsageError(
            f"{target} does not exist",
            hint="expected a template file, a folder with workflow.yaml, or namespace/name",
        )
    name, _, version = rest.partition(":")
    return RegisteredName(namespace, name, version or None)


def choose_plan(plans: Sequence[Plan], name: str | None, target: str) -> Plan:
    """The only plan, or the one of that name. Raises `UsageError` that lists what there is."""
    found = [plan for plan in plans if name in (None, plan.name)]
    if len(found) == 1:
        return found[0]
    names = ", ".join(plan.name for plan in plans)
    problem = f"has no template {name!r}" if name else "holds several templates"
    raise UsageError(f"{target} {problem}; it has: {names}", hint="choose one with --template NAME")
