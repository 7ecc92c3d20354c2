"""Targets of a submission: a template file, a folder, or a registered template."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tasker.errors import TemplateNotFound, UsageError
from tasker.json_values import require_findable
from tasker.template.diagnostics import near

if TYPE_CHECKING:
    from tasker.services.workflows.handlers import Workflow
    from tasker.template.plan import Plan


MOST_NAMES = 1000
"""Maximum number of names in a folder compared with a missing one."""


class RegisteredName(NamedTuple):
    """Name of a template in the database; `version` None means the one registered last."""

    namespace: str
    name: str
    version: str | None


def is_there(target: str | Path) -> bool:
    """Return True if the target is an existing file or folder. Raises `UsageError` if that cannot be checked."""
    try:
        return Path(target).exists()
    except OSError as error:  # mostly a name that is too long
        raise UsageError(
            f"{str(target)[:80]!r} cannot be read: {error.strerror}",
            hint="expected a template file, a folder with workflow.yaml, or namespace/name[:version]",
        ) from None


def registered_name(target: str) -> RegisteredName:
    """Split `namespace/name[:version]`. Raises `UsageError` for anything else, such as a path that does not exist."""
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
    """Report that the path does not exist either, if the first part of an unknown `namespace/name` is a folder."""
    try:
        yield
    except TemplateNotFound as error:
        if not Path(target).parent.is_dir():
            raise
        hint = resolve_path(target) or error.hint
        raise TemplateNotFound(f"{target} does not exist, and {error.message}", hint=hint) from error


def resolve_path(target: str | Path) -> str | None:
    """Return a hint with a path similar to this missing one, or None.

    Searches the same folder, and for a bare name also the folders in it.
    """
    path = Path(target).expanduser()
    try:
        beside = [other.name for other in islice(path.parent.iterdir(), MOST_NAMES) if other.name[0] != "."]
    except OSError:
        return None
    if similar := near(path.name, beside):
        return f"did you mean `{path.with_name(similar[0])}`?"
    below = [] if path.name != str(target) else [str(other) for other in islice(Path().glob(f"*/{path.name}"), 1)]
    return f"did you mean `{below[0]}`?" if below else None


def choose_workflow(workflows: Sequence[Workflow], name: str | None, target: str) -> Workflow:
    """Return the workflow of that name; without a name the only one, or the only one that no other of them starts.

    Raises `UsageError` listing the target's templates.
    """
    matches = [workflow for workflow in workflows if name in (None, workflow.plan.name)]
    if name is None and len(matches) > 1:
        started = {key for workflow in workflows for key in templates_started(workflow.plan)}
        first = [workflow for workflow in matches if (workflow.plan.namespace, workflow.plan.name) not in started]
        matches = first if len(first) == 1 else matches
    if len(matches) == 1:
        return matches[0]
    names = ", ".join(dict.fromkeys(workflow.plan.name for workflow in workflows))
    if not matches:
        raise UsageError(f"{target} has no template {name!r}; it has: {names}", hint="choose one with --template NAME")
    same = len({workflow.plan.name for workflow in matches}) == 1
    hint = "name the file of one" if same else "choose one with --template NAME"
    of_name = f" called {matches[0].plan.name!r}" if same else ""
    raise UsageError(f"{target} holds {len(matches)} templates{of_name}; it has: {names}", hint=hint)


def workflows_started(workflow: Workflow, workflows: Sequence[Workflow]) -> list[Workflow]:
    """Return those of `workflows` whose tasks the workflow starts, itself or through others."""
    found: list[Workflow] = []
    waiting = [workflow]
    while waiting:
        wanted = templates_started(waiting.pop().plan)
        new = [each for each in workflows if (each.plan.namespace, each.plan.name) in wanted and each not in found]
        found += new
        waiting += new
    return found


def templates_started(plan: Plan) -> set[tuple[str, str]]:
    """Return namespace and name of the templates whose tasks the steps of a plan start."""
    waits = [step.wait for step in plan.steps if step.wait is not None and step.type.starts_children]
    return {(wait["namespace"] or plan.namespace, wait["template"]) for wait in waits}
