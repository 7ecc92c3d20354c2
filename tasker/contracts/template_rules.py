"""Rules that plugins add to those of templates: what they find, and how the compiler asks them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from tasker.contracts.dataclasses import dataclass
from tasker.contracts.plan import Plan


@dataclass(frozen=True, slots=True)
class RuleFinding:
    """What a plugin finds in a template. With an `error` the template cannot be used; a `warning` is only told."""

    code: str
    """Which rule it is, in one word; told behind the plugin's name: `shop.owner`."""
    message: str
    step: str | None = None
    """The step that it is about; None: the template."""
    keys: tuple[str | int, ...] = ()
    """Where in it, by the keys that `tasker template show` prints: `("retry", "max_attempts")`. Empty: its name."""
    severity: Literal["error", "warning"] = "error"
    hint: str | None = None
    """What to do."""


class RuleFailed(Exception):
    """A plugin could not say what it finds; the text says why."""


class TemplateRule(Protocol):
    """The rules of one plugin."""

    @property
    def plugin(self) -> str:
        """Its name."""
        ...

    def judge(self, plan: Plan) -> Sequence[RuleFinding]:
        """What it finds in a template without errors. Raises `RuleFailed`."""
        ...


TemplateRules = Sequence[TemplateRule]
