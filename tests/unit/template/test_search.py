"""Templates are found by patterns with braces and folders of any depth."""

from __future__ import annotations

from pathlib import Path

from tasker.services.workflows.template_search import expanded, search


def test_every_alternative_is_tried() -> None:
    assert list(expanded("a/*.{yml,yaml}")) == ["a/*.yml", "a/*.yaml"]
    assert list(expanded("{a,b{1,2}}.yaml")) == ["a.yaml", "b1.yaml", "a.yaml", "b2.yaml"]
    assert list(expanded("plain")) == ["plain"]


def test_files_are_found_once_and_sorted(tmp_path: Path) -> None:
    for name in ("b.yml", "deep/er/a.yaml", "deep/no.txt", "deep/folder.yaml/x.yml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    pattern = f"{tmp_path}/**/*.{{yml,yaml}}"
    found = [str(path.relative_to(tmp_path)) for path in search([pattern, pattern, f"{tmp_path}/none/*.yml"])]
    assert found == ["b.yml", "deep/er/a.yaml", "deep/folder.yaml/x.yml"]
