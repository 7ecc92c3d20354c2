"""Async tests of a folder on one event loop per module, so that a module can share an app."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest


def share_loops(items: Iterable[pytest.Item], folder: Path) -> None:
    """Run the tests below `folder` on the loop of their module; its async fixtures need `loop_scope="module"`."""
    below = f"{folder}/"  # compared as text: the parents of thousands of paths take a tenth of the collection
    for item in items:
        if str(item.path).startswith(below) and item.get_closest_marker("asyncio"):
            item.add_marker(pytest.mark.asyncio(loop_scope="module"), append=False)
