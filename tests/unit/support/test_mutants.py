"""The mutants' runner: what it says of a patch that the tests notice, of one that they do not, and of a stale one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import mutants

CODE = "def double(number):\n    return number * 2\n"
PATCH = """# {title}
# tests: test_code.py
--- a/code_.py
+++ b/code_.py
@@ -1,2 +1,2 @@
 def double(number):
-    return number * {old}
+    return number * {new}
"""


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Its tests need no plugins, and importing them takes longer than the tests."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_PLUGINS", "xdist.plugin")
    (tmp_path / "code_.py").write_text(CODE)
    (tmp_path / "test_code.py").write_text("from code_ import double\n\ndef test_it(): assert double(2) == 4\n")
    return tmp_path


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [("2", "3", "killed"), ("2", "(1 + 1)", "SURVIVED"), ("7", "8", "does not apply")],
)
def test_a_patch_is_killed_survives_or_is_stale(copy: Path, old: str, new: str, expected: str) -> None:
    patch = copy / "M1.patch"
    patch.write_text(PATCH.format(title="doubling", old=old, new=new))

    assert mutants.verdict(mutants.Mutant.read(patch), copy, mutants.Programs()).startswith(expected)
    assert (copy / "code_.py").read_text() == CODE


def test_red_tests_kill_nothing(copy: Path) -> None:
    (copy / "test_code.py").write_text("def test_it(): assert False\n")
    patch = copy / "M1.patch"
    patch.write_text(PATCH.format(title="doubling", old="2", new="3"))

    assert mutants.verdict(mutants.Mutant.read(patch), copy, mutants.Programs()) == "its tests are red without it"


def test_every_patch_says_what_it_breaks_and_which_tests_notice() -> None:
    root = Path(mutants.__file__).parents[1]
    for mutant in mutants.find([]):
        assert mutant.title
        assert all((root / test.split("::")[0]).exists() for test in mutant.tests), mutant.path


def test_a_patch_without_tests_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "M1.patch").write_text("# a title\n--- a/x\n+++ b/x\n")

    assert mutants.main([str(tmp_path)]) == 2
    assert "tests:" in capsys.readouterr().err
