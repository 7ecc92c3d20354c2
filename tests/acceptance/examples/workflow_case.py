"""What a run of an example workflow must come to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

WORKFLOWS = Path(__file__).parents[3] / "workflows"


@dataclass(frozen=True)
class Failed:
    """The step that fails, and the error that says why. `metadata` names what its metadata hold at least."""

    step: str
    error_type: str
    code: str
    retryable: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """One run: `change` replaces fields of the folder's input.json.

    `steps` are the names of the steps that must exist at the end, no more and no fewer; those in `waiting` must be
    pending, the one in `failed` in error, all others complete. `results` are exact, `holds` are parts of results.
    """

    id: str
    folder: str
    steps: tuple[str, ...]
    change: Mapping[str, Any] = field(default_factory=dict)
    results: Mapping[str, Any] = field(default_factory=dict)
    holds: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    attempts: Mapping[str, int] = field(default_factory=dict)
    waiting: tuple[str, ...] = ()
    failed: Failed | None = None

    @property
    def input(self) -> dict[str, Any]:
        """The folder's own input with the changes of this case."""
        return load_input(self.folder) | dict(self.change)

    @property
    def status(self) -> str:
        """The state in which the task ends."""
        return "error" if self.failed else "complete"

    def state_of(self, step: str) -> str:
        """The state in which `step` ends."""
        if self.failed and step == self.failed.step:
            return "error"
        return "pending" if step in self.waiting else "complete"


def load_input(folder: str) -> dict[str, Any]:
    """The input.json of a workflow."""
    data: dict[str, Any] = json.loads((WORKFLOWS / folder / "input.json").read_text(encoding="utf-8"))
    return data
