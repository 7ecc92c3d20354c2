"""Template rules of plugins: their findings, and the port through which the compiler calls them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from tasker.contracts.dataclasses import dataclass
from tasker.contracts.plan import Plan


@dataclass(frozen=True, slots=True)
class RuleFinding:
    """Finding of a plugin in a template. With an `error` the template is rejected; a `warning` is only reported."""

    code: str
    """One-word code of the rule, shown after the plugin's name: `shop.owner`."""
    message: str
    step: str | None = None
    """Step concerned; None: the template."""
    keys: tuple[str | int, ...] = ()
    """Location, as the keys that `tasker template show` prints: `("retry", "max_attempts")`. Empty: its name."""
    severity: Literal["error", "warning"] = "error"
    hint: str | None = None
    """Suggested fix."""


class RuleFailed(Exception):
    """Failure of a plugin to check a template; the text is the reason."""


class TemplateRule(Protocol):
    """Rules of one plugin."""

    @property
    def plugin(self) -> str:
        """Name of the plugin."""
        ...

    def judge(self, plan: Plan) -> Sequence[RuleFinding]:
        """Return the findings in a template without errors. Raises `RuleFailed`."""
        ...


TemplateRules = Sequence[TemplateRule]
