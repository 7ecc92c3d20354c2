"""Views of a deployment: what registering templates would change, and whom it concerns."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from tasker.dataclasses import dataclass

Action = Literal["unchanged", "new", "changed", "replaced", "refused", "gone"]


@dataclass(frozen=True, slots=True)
class TemplateChange:
    """Difference of two versions of a template for one reader; `line` is that of the text, None if there is none."""

    code: str
    breaking: bool
    level: str
    reader: str
    path: str
    message: str
    line: int | None


@dataclass(frozen=True, slots=True)
class PlannedTemplate:
    """Template of a deployment. `compared_with` is the registered version that it was compared with.

    `action`: `new` (no version is registered), `changed` (this version is not), `replaced` (this version has other
    content, and `force` is set), `refused` (the same without `force`), `unchanged`, or `gone` (registered, and not in
    the text; it stays registered). `advised_version` is set if the version is too low for the changes.
    """

    namespace: str
    name: str
    version: str
    action: Action
    compared_with: str | None
    advised_version: str | None
    changes: Sequence[TemplateChange]
    schedules: Sequence[str]
    """Schedules that begin, change or end."""
    line: int | None


@dataclass(frozen=True, slots=True)
class OpenStep:
    """Step that open tasks have still to run. `steps` counts those that exist; others may be created."""

    name: str
    handler: str
    steps: int


@dataclass(frozen=True, slots=True)
class OpenTasks:
    """Open tasks of one version, by the hash of what they run; `current`: it is what new tasks of the version run."""

    namespace: str
    name: str
    version: str
    hash: str
    current: bool
    tasks: int
    oldest: datetime
    steps: Sequence[OpenStep]


@dataclass(frozen=True, slots=True)
class UnservedSteps:
    """Steps that no live worker could run, and why; `open_tasks`: of tasks that run, else of the deployed version."""

    template: str
    steps: Sequence[str]
    reason: str
    open_tasks: bool


@dataclass(frozen=True, slots=True)
class Deployment:
    """Result of comparing templates with the registered ones.

    `token` stands for the text and the registered versions of its templates: they are registered only while both are
    the same. `has_changes`: there is something to register.
    """

    has_changes: bool
    token: str
    templates: Sequence[PlannedTemplate]
    open_tasks: Sequence[OpenTasks]
    unserved: Sequence[UnservedSteps]
