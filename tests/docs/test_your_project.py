"""docs/your-project.md: its package and Tasker, built as wheels, run in an environment with nothing else of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.snippets import write_files
from tests.support.installed import Environment

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "your-project.md").read_text("utf-8")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page's package as its reader writes it."""
    folder = write_files(PAGE, tmp_path_factory.mktemp("project"))
    (folder / "src" / "shop" / "__init__.py").touch()
    return folder


@pytest.fixture(scope="module")
def environment(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Only the two wheels are installed."""
    return Environment.of_wheels(tmp_path_factory.mktemp("installed"), [ROOT, project])


def test_the_wheels_bring_all_that_they_need_and_their_names(environment: Environment) -> None:
    assert environment.distributions == {"tasker_engine", "shop"}
    assert environment("tasker", "--version").startswith("tasker ")
    code = "import tasker; from tasker.messaging import installed_backends as b; print(tasker.__file__, *b())"
    place, *backends = environment("python", "-c", code).split()
    assert Path(place).is_relative_to(environment.site)
    assert backends == ["memory", "nats", "pgmq", "rabbitmq", "redis"]


def test_the_package_runs_by_itself_and_by_the_command_line(environment: Environment) -> None:
    assert environment("python", "-m", "shop") == "Hello, Ada!\n"

    said = environment("tasker", "run", environment.site / "shop" / "workflows" / "greeting", "--set", "name=you")
    assert '"text": "Hello, you!"' in said
    assert (environment.work / ".tasker" / ".gitignore").exists()


def test_what_the_page_lists_is_what_tasker_looks_into() -> None:
    sources = (path.read_text("utf-8") for path in (ROOT / "tasker").rglob("*.py"))
    groups = {group for text in sources for group in re.findall(r'GROUP = "(tasker\.\w+)"', text)}
    assert groups == {
        "tasker.handlers",
        "tasker.templates",
        "tasker.error_classifiers",
        "tasker.backends",
        "tasker.plugins",
        "tasker.optional_plugins",
        "tasker.resources",
        "tasker.secrets",
    }
    assert all(f"| `{group}` |" in PAGE for group in groups)
