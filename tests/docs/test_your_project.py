"""docs/your-project.md: its package and Tasker, built as wheels, run in an environment with nothing else of them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.docs.snippets import snippets

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "your-project.md").read_text("utf-8")
TRANSIENT = ("DATABASE_URL", "PYTHONPATH", "TASKER_CONFIG_PATH", "TASKER_CONFIG_ROOT")

pytestmark = pytest.mark.slow


def run(*command: str | Path, cwd: Path) -> str:
    """What the command prints."""
    plain = {name: value for name, value in os.environ.items() if name not in TRANSIENT}
    done = subprocess.run([*map(str, command)], cwd=cwd, env=plain, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@dataclass(frozen=True)
class Environment:
    """A virtual environment, and an empty folder to work in."""

    folder: Path
    work: Path

    @property
    def site(self) -> Path:
        """Where its packages are."""
        return Path(sysconfig.get_path("purelib", "venv", {"base": str(self.folder), "platbase": str(self.folder)}))

    def __call__(self, program: str, *arguments: str | Path) -> str:
        return run(self.folder / "bin" / program, *arguments, cwd=self.work)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page's package as its reader writes it."""
    folder = tmp_path_factory.mktemp("project")
    for snippet in snippets(PAGE):
        first, _, _ = snippet.text.partition("\n")
        if first.startswith("# "):
            file = folder / first.removeprefix("# ")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(snippet.text, encoding="utf-8")
    (folder / "src" / "shop" / "__init__.py").touch()
    return folder


@pytest.fixture(scope="module")
def environment(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Only the two wheels are installed; what Tasker depends on is lent, without our own checkout."""
    folder = tmp_path_factory.mktemp("installed")
    made = Environment(folder / "venv", folder / "work")
    made.work.mkdir()
    run(sys.executable, "-m", "venv", "--without-pip", made.folder, cwd=folder)
    for source in (ROOT, project):
        run(sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder / "dist", cwd=source)
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", made.folder / "bin" / "python")
    run(*pip, "install", "--quiet", "--no-deps", "--no-index", *(folder / "dist").iterdir(), cwd=folder)
    lent = folder / "lent"
    lent.mkdir()
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if not path.name.startswith("tasker") and path.suffix != ".pth":
            (lent / path.name).symlink_to(path)
    (made.site / "lent.pth").write_text(f"{lent}\n")
    return made


def test_the_wheels_bring_all_that_they_need_and_their_names(environment: Environment) -> None:
    assert {path.name.split("-")[0] for path in environment.site.glob("*.dist-info")} == {"tasker_engine", "shop"}
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
    assert groups == {"tasker.handlers", "tasker.backends"}
    assert all(f"| `{group}` |" in PAGE for group in groups)
