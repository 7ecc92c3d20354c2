"""Somebody else's distribution with a messaging backend, as an installer would leave it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest


def install_backend(
    folder: Path, monkeypatch: pytest.MonkeyPatch, distribution: str, name: str, module: str, source: str
) -> None:
    """Put a distribution with one backend module on the path of this process."""
    root = folder / distribution
    info = root / f"{distribution}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[tasker.backends]\n{name} = {module}\n")
    (root / f"{module}.py").write_text(source)
    monkeypatch.syspath_prepend(root)
    monkeypatch.delitem(sys.modules, module, raising=False)
