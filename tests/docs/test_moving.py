"""docs/moving-from-tasker-core.md: both wheels run its handlers in an environment with nothing else of Tasker."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tasker_core import __version__
from tests.docs.snippets import snippets
from tests.support.installed import Environment

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "moving-from-tasker-core.md").read_text("utf-8")
PROJECT = tomllib.loads((ROOT / "compat" / "pyproject.toml").read_text("utf-8"))["project"]
IMPORTS = """
import importlib, pkgutil, tasker, tasker_core
for found in pkgutil.walk_packages(tasker_core.__path__, "tasker_core."):
    importlib.import_module(found.name)
print(tasker.__file__, tasker_core.__file__, len(tasker_core.__all__))
"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Only the two wheels are installed."""
    return Environment.of_wheels(tmp_path_factory.mktemp("installed"), [ROOT, ROOT / "compat"])


def test_the_distribution_has_the_version_that_it_stands_for_and_wants_the_engine_alone() -> None:
    assert PROJECT["version"] == __version__
    assert PROJECT["dependencies"] == ["tasker-engine"]


def test_both_wheels_bring_all_that_they_need(environment: Environment) -> None:
    assert environment.distributions == {"tasker_engine", "tasker_engine_core_compat"}
    engine, surface, names = environment("python", "-W", "error", "-c", IMPORTS).split()
    assert Path(engine).is_relative_to(environment.site)
    assert Path(surface).is_relative_to(environment.site)
    assert int(names) == 121
    assert (environment.site / "tasker_core" / "py.typed").exists()


def test_the_page_s_handlers_run_there(environment: Environment) -> None:
    for snippet in snippets(PAGE):
        if snippet.file:
            file = environment.work / snippet.file
            file.parent.mkdir(exist_ok=True)
            file.write_text(snippet.text, encoding="utf-8")

    assert '"text": "HELLO, ADA!"' in environment("tasker", "run", "greeting", "--set", "name=Ada")
