"""Somebody else's distribution with a messaging backend, as an installer would leave it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest


def install_backend(
    folder: Path, monkeypatch: pytest.MonkeyPatch, distribution: str, name: str, module: str, source: str
) -> None:
    """Put a distribution with one backend module on the path of this process."""
    root = write_distribution(folder, distribution, "tasker.backends", name, module, source)
    monkeypatch.syspath_prepend(root)
    monkeypatch.delitem(sys.modules, module, raising=False)


def install_plugin(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, source: str, group: str = "tasker.plugins"
) -> None:
    """Put a distribution with one plugin on the path of this process."""
    root = write_distribution(folder, f"{name}_dist", group, name, f"{name}_plugin", source)
    monkeypatch.syspath_prepend(root)
    monkeypatch.delitem(sys.modules, f"{name}_plugin", raising=False)


def write_distribution(folder: Path, distribution: str, group: str, name: str, module: str, source: str) -> Path:
    """A folder with a distribution of one module that offers it in an entry-point group; for a PYTHONPATH, too."""
    root = folder / distribution
    info = root / f"{distribution}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{group}]\n{name} = {module}\n")
    (root / f"{module.partition(':')[0]}.py").write_text(source)
    return root
