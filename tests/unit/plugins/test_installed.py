"""What installed distributions offer, wherever they are installed; and that it costs little where nobody offers it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, DistributionFinder
from pathlib import Path
from zipfile import ZipFile

import pytest

from tasker.installed import offered
from tests.support.strangers import write_distribution

GROUP = "tasker.owls"


def names() -> list[str]:
    return [point.name for point in offered(GROUP)]


def test_what_a_folder_of_the_search_path_has_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write_distribution(tmp_path, "owls", GROUP, "barn", "barn_owl", "")
    assert names() == []
    monkeypatch.syspath_prepend(root)
    assert names() == ["barn"]
    assert offered("tasker.ow") == ()


def test_what_an_egg_s_folder_has_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write_distribution(tmp_path, "owls", GROUP, "barn", "barn_owl", "")
    (root / "owls-1.0.dist-info").rename(root / "owls.egg-info")
    monkeypatch.syspath_prepend(root)
    assert names() == ["barn"]


def test_what_an_archive_has_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write_distribution(tmp_path, "owls", GROUP, "barn", "barn_owl", "")
    with ZipFile(tmp_path / "owls.zip", "w") as archive:
        for file in filter(Path.is_file, root.rglob("*")):
            archive.write(file, file.relative_to(root))
    monkeypatch.syspath_prepend(tmp_path / "owls.zip")
    assert names() == ["barn"]


def test_what_only_a_finder_knows_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write_distribution(tmp_path, "owls", GROUP, "barn", "barn_owl", "")

    class Finder(DistributionFinder):
        def find_spec(self, *_: object) -> None:
            return None

        def find_distributions(self, context: object = None) -> Iterator[Distribution]:  # type: ignore[override]
            yield Distribution.at(root / "owls-1.0.dist-info")

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder()])
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "nowhere")])  # what was read before counts no more
    assert names() == ["barn"]


def test_a_folder_that_is_missing_and_a_distribution_without_offers_are_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "owls-1.0.dist-info").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.syspath_prepend(tmp_path / "missing")
    assert names() == []


def test_where_nobody_offers_anything_no_metadata_is_read() -> None:
    code = f"import sys; from tasker.installed import offered; offered({GROUP!r}); "
    code += "print('importlib.metadata' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


def test_what_others_offer_is_not_kept() -> None:
    code = (
        "import gc; from importlib.metadata import EntryPoint; from tasker.installed import installed_backends\n"
        "installed_backends(); gc.collect()\n"
        "print(*{each.group for each in gc.get_objects() if isinstance(each, EntryPoint)})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    kept = done.stdout.split()
    assert "tasker.backends" in kept
    assert not [group for group in kept if not group.startswith("tasker.")]
