"""docs/writing-plugins.md: its plugin and a stranger's backend as wheels, in an environment with nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tasker.cli.scaffold.new_plugin import write_plugin
from tasker.plugins.hooks import Hooks
from tests.docs.snippets import write_files
from tests.support.installed import Environment

ROOT = Path(__file__).parents[2]

PAGE = (ROOT / "docs" / "writing-plugins.md").read_text("utf-8")
OWL_PROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "tasker-owl"
version = "1.0.0"

[project.entry-points."tasker.backends"]
owl = "tasker_owl"
"""
OWL = '''
"""Owls."""

VARIABLES = ("OWL_URL",)


def create(settings):
    import tasker_memory

    class Owls(tasker_memory.MemoryBackend):
        def provider_name(self):
            return f"owls of {settings['url']}"

    return Owls(tasker_memory.backend.SystemClock())


def settings_table():
    from tasker.settings.table import Table, text, whole

    class OwlTable(Table):
        """Owls that carry letters."""

        url: str = text("owl://tower", "The owlery.", variable="OWL_URL")
        owls: int = whole(3, 1, 12, "Owls that fly at once.")

    return OwlTable
'''
STEPS = """
from tasker.errors import RetryableError
from tasker.step_handler import step_handler


@step_handler("moody")
def moody(context):
    if context.retry_count == 0:
        raise RetryableError("not in the mood")
    return {"mood": "good"}
"""
TEMPLATE = """
name: moods
namespace: shop
version: 1.0.0
steps: [{name: mood, handler: moody, retry: {max_attempts: 2, backoff: fixed, backoff_base_ms: 1}}]
"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The wheels of the page's plugin and of a backend are installed beside Tasker's, and there is a workflow."""
    plugin = write_files(PAGE, tmp_path_factory.mktemp("plugin"))
    backend = tmp_path_factory.mktemp("backend")
    (backend / "tasker_owl").mkdir()
    (backend / "pyproject.toml").write_text(OWL_PROJECT)
    (backend / "tasker_owl" / "__init__.py").write_text(OWL)
    folder, _ = write_plugin("night_bell", tmp_path_factory.mktemp("new"))
    made = Environment.of_wheels(tmp_path_factory.mktemp("installed"), [ROOT, plugin, backend, folder])
    (made.work / "test_night_bell.py").write_text((folder / "test_night_bell.py").read_text())
    (made.work / "moods").mkdir()
    (made.work / "moods" / "handlers.py").write_text(STEPS)
    (made.work / "moods" / "workflow.yaml").write_text(TEMPLATE)
    return made


def test_the_plugin_of_the_page_hears_of_attempts_and_brings_its_command(environment: Environment) -> None:
    assert '"mood": "good"' in environment("tasker", "run", "moods")
    told = "mood attempt 1: retryable_error not in the mood\n"
    assert (environment.work / "failures.txt").read_text() == told
    assert environment("tasker", "failures") == told
    assert "Show the attempts that have failed." in environment("tasker", "--help")


def test_a_plugin_that_tasker_new_makes_works_once_it_is_installed(environment: Environment) -> None:
    shown = environment("tasker", "plugin", "show", "night_bell")
    assert "status:   on" in shown
    assert "settings: plugins.night_bell.loud" in shown
    assert "1 passed" in environment("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_night_bell.py")


def test_a_strangers_backend_is_configured_and_used_like_ours(environment: Environment) -> None:
    assert "Owls that fly at once." in environment("tasker", "config", "explain", "common.queues.owl.owls")
    assert "## common.queues.owl" in environment("tasker", "config", "docs")
    file = environment.work / "wrong.toml"
    file.write_text("[common.queues.owl]\nowls = 13\n")
    refused = environment("python", "-c", VALIDATE, file)
    assert "Reduce to 12 or less" in refused
    assert environment("python", "-c", NAMED) == "owls of owl://north\n"


VALIDATE = """
import subprocess, sys
from pathlib import Path
command = [Path(sys.executable).with_name("tasker"), "config", "validate", "--file", sys.argv[1]]
print(subprocess.run(command, capture_output=True, text=True).stdout)
"""

NAMED = """
from tasker.app.configured import from_environment
from tasker.messaging import load_backend
made = from_environment(environ={"OWL_URL": "owl://north"})
print(load_backend("owl", made.backend_settings["owl"]).provider_name())
"""


def test_the_page_names_every_hook_with_its_arguments() -> None:
    named = set(re.findall(r"^\| `(tasker_\w+)\((\w*)\)` ", PAGE, re.MULTILINE))
    hooks = {name: function for name, function in vars(Hooks).items() if name.startswith("tasker_")}
    assert named == {(name, ", ".join(each.__code__.co_varnames[1:])) for name, each in hooks.items()}
    assert all(Path(each.__code__.co_filename).name == "hooks.py" and each.__doc__ for each in hooks.values())
