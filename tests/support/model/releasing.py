"""Which held steps are next, and which ones let them pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tests.support.model.parts import Hands, Step, rank, serves

if TYPE_CHECKING:
    from tests.support.model.model import Model

ROTATION_S = 2.0
"""By how much the rotation over tasks may change the order of held steps."""


def yields(model: Model, step: Step) -> bool:
    """Whether the step is not handed over, because a more urgent one waits."""
    namespace = step.task.plan.namespace
    return namespace in model.ordered and any(
        held.task.priority > step.task.priority and held.task.plan.namespace == namespace and not held.paused
        for held in model.held()
    )


def check_release(model: Model, chosen: Sequence[Step], hands: Hands) -> None:
    """These held steps were released: as many as there is room for, those that wait longest or are most urgent."""
    waiting = claimed = 0
    for namespace in hands.namespaces:
        held = [step for step in model.held() if step.task.plan.namespace == namespace and not model.is_paused(step)]
        now = [step for step in chosen if step.task.plan.namespace == namespace]
        if namespace in model.ordered:
            held = [step for step in held if serves(hands, step)]
            waiting, claimed = waiting + len(held), claimed + len(now)
        else:
            room = model.room(hands.window, released=True)(namespace)
            assert len(now) == min(len(held), room), (namespace, [s.key for s in now])
        if now:
            last = max(map(rank, now)) - ROTATION_S
            assert all(rank(step) >= last for step in held if step not in now)
    assert claimed == min(hands.slots, waiting), (claimed, hands, waiting)
