"""One thing that may grow with a size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.support.engine_fixture import Lab

Prepare = Callable[[Lab, int], Callable[[], Any]]


@dataclass(frozen=True)
class Case:
    """`prepare` fills the lab's database for a size and answers the call that is measured, by the lab's first session.

    The call of `size` may take `seconds`; `unit` says what the size counts.
    """

    name: str
    unit: str
    size: int
    seconds: float
    prepare: Prepare
