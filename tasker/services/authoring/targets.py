"""What a submission may name: a template file, a folder, or a registered template."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from tasker.errors import UsageError

if TYPE_CHECKING:
    from tasker.services.authoring.handlers import Workflow


class RegisteredName(NamedTuple):
    """A template in the database; `version` None is the one registered last."""

    namespace: str
    name: str
    version: str | None


def registered_name(target: str) -> RegisteredName:
    """The parts of `namespace/name[:version]`. Raises `UsageError` for anything else: a path that is not there."""
    namespace, _, rest = target.partition("/")
    if not (namespace and rest) or "/" in rest or rest.endswith((".yaml", ".yml")) or target[0] in "./~":
        raise UsageError(
            f"{target} does not exist",
            hint="expected a template file, a folder with workflow.yaml, or namespace/name[:version]",
        )
    name, _, version = rest.partition(":")
    return RegisteredName(namespace, name, version or None)


def choose_workflow(workflows: Sequence[Workflow], name: str | None, target: str) -> Workflow:
    """The only workflow, or the one of that name. Raises `UsageError` that lists what the target has."""
    found = [workflow for workflow in workflows if name in (None, workflow.plan.name)]
    if len(found) == 1:
        return found[0]
    names = ", ".join(dict.fromkeys(workflow.plan.name for workflow in workflows))
    if not found:
        raise UsageError(f"{target} has no template {name!r}; it has: {names}", hint="choose one with --template NAME")
    same = len({workflow.plan.name for workflow in found}) == 1
    hint = "name the file of one" if same else "choose one with --template NAME"
    of_name = f" called {found[0].plan.name!r}" if same else ""
    raise UsageError(f"{target} holds {len(found)} templates{of_name}; it has: {names}", hint=hint)
