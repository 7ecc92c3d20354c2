"""One thing that may grow with a size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tasker.db.limits import SESSION
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


def lab_of(url: str) -> Lab:
    """A lab whose first session compiles no more queries than one of the product, whatever the server's default."""
    lab = Lab(url)
    lab.one.execute(f"set jit to {SESSION['jit']}")
    return lab
