"""What a submission may name: a template file, a folder, or a registered template."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tasker.errors import TemplateNotFound, UsageError
from tasker.lifecycle.storable import require_findable
from tasker.template.diagnostics import near

if TYPE_CHECKING:
    from tasker.services.authoring.handlers import Workflow


MOST_NAMES = 1000
"""How many names of a folder are compared with one that is not there."""


class RegisteredName(NamedTuple):
    """A template in the database; `version` None is the one registered last."""

    namespace: str
    name: str
    version: str | None


def is_there(target: str | Path) -> bool:
    """Whether the target is a file or a folder. Raises `UsageError` where that cannot be looked at."""
    try:
        return Path(target).exists()
    except OSError as error:  # above all a name that is too long for one
        raise UsageError(
            f"{str(target)[:80]!r} cannot be looked at: {error.strerror}",
            hint="expected a template file, a folder with workflow.yaml, or namespace/name[:version]",
        ) from None


def registered_name(target: str) -> RegisteredName:
    """The parts of `namespace/name[:version]`. Raises `UsageError` for anything else: a path that is not there."""
    require_findable(target, "target")
    namespace, _, rest = target.partition("/")
    if not (namespace and rest) or "/" in rest or rest.endswith((".yaml", ".yml")) or target[0] in "./~":
        raise UsageError(
            f"{target} does not exist",
            hint=resolve_path(target)
            or "expected a template file, a folder with workflow.yaml, or namespace/name[:version]",
        )
    name, _, version = rest.partition(":")
    return RegisteredName(namespace, name, version or None)


@contextmanager
def unknown_target(target: str) -> Iterator[None]:
    """Where the first part of an unknown `namespace/name` is a folder, say that the path is not there either."""
    try:
        yield
    except TemplateNotFound as error:
        if not Path(target).parent.is_dir():
            raise
        hint = resolve_path(target) or error.hint
        raise TemplateNotFound(f"{target} does not exist, and {error.message}", hint=hint) from error


def resolve_path(target: str | Path) -> str | None:
    """A hint with a path like this one, which does not exist; None when nothing is near.

    It is looked for in the same folder, and for a bare name in the folders there.
    """
    path = Path(target).expanduser()
    try:
        beside = [other.name for other in islice(path.parent.iterdir(), MOST_NAMES) if other.name[0] != "."]
    except OSError:
        return None
    if found := near(path.name, beside):
        return f"did you mean `{path.with_name(found[0])}`?"
    below = [] if path.name != str(target) else [str(other) for other in islice(Path().glob(f"*/{path.name}"), 1)]
    return f"did you mean `{below[0]}`?" if below else None


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
