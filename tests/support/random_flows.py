"""Random templates with `when`, `rules` and `for_each`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from tasker.template import compile_text
from tasker.template.plan import Plan

FLAGS = 6


@dataclass(frozen=True)
class Step:
    """A step as its author writes it; `rules` are the number of a flag, None for `else`, and the branches to take."""

    name: str
    kind: str
    above: Sequence[str]
    flag: int | None = None
    rules: list[tuple[int | None, list[str]]] = field(default_factory=list)
    batch_size: int = 1

    def written(self) -> dict[str, Any]:
        keys: dict[str, Any] = {"name": self.name, "handler": "h", "dependencies": list(self.above)}
        if self.flag is not None:
            keys["when"] = f"input.flags[{self.flag}]"
        if self.kind == "join":
            keys["type"] = "deferred_convergence"
        if self.kind == "each":
            keys["for_each"] = {"in": f"input.lists.{self.name}", "batch_size": self.batch_size}
        if self.kind == "rules":
            del keys["handler"]
            keys["rules"] = [
                {"else": taken} if flag is None else {"when": f"input.flags[{flag}]", "then": taken}
                for flag, taken in self.rules
            ]
        return keys


@st.composite
def flows(draw: st.DrawFn) -> list[Step]:
    steps = [Step("start", "plain", ())]
    for number in range(draw(st.integers(1, 9))):
        name = f"s{number}"
        conditional = [step.name for step in steps if step.flag is not None or step.kind == "each"]
        kind = draw(st.sampled_from(["plain", "plain", "rules", "each", *(["join"] if conditional else [])]))
        flag = draw(st.none() | st.integers(0, FLAGS - 1)) if kind != "join" else None
        if kind == "join":
            joined = draw(st.lists(st.sampled_from(conditional), min_size=1, max_size=3, unique=True))
            steps.append(Step(name, kind, ("start", *joined)))
            continue
        deciding = [step.name for step in steps if step.kind == "rules"]
        plain = [step.name for step in steps if step.kind not in ("rules", "each")]
        above = draw(st.lists(st.sampled_from(plain), min_size=1, max_size=3, unique=True))
        if deciding and draw(st.booleans()):
            above = [draw(st.sampled_from(deciding))]
        steps.append(Step(name, kind, above, flag, batch_size=draw(st.integers(1, 3))))
    return [_with_rules(draw, step, steps) for step in steps]


def _with_rules(draw: st.DrawFn, step: Step, steps: list[Step]) -> Step:
    branches = [other.name for other in steps if step.name in other.above and other.kind != "join"]
    if step.kind != "rules":
        return step
    if not branches:
        return Step(step.name, "plain", step.above, step.flag)
    flags = draw(st.lists(st.integers(0, FLAGS - 1), min_size=1, max_size=3))
    taken = st.lists(st.sampled_from(branches), max_size=3, unique=True)
    rules: list[tuple[int | None, list[str]]] = [(flag, draw(taken)) for flag in flags]
    if draw(st.booleans()):
        rules.append((None, draw(taken)))
    return Step(step.name, "rules", step.above, step.flag, rules)


def plan_of(steps: list[Step]) -> Plan:
    text = json.dumps({"name": "f", "namespace": "n", "version": "1.0.0", "steps": [step.written() for step in steps]})
    result = compile_text(text)
    assert result.ok, result.errors
    return result.plans[0]
