"""Every page can be followed: what it shows is run, on the embedded database, as a reader would."""

from __future__ import annotations

import re
import runpy
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tasker.db.embedded import EmbeddedServer
from tasker.db.embedded.server import DEFAULT_DATA_DIR
from tasker.db.migrate import upgrade
from tasker.errors import UsageError
from tasker.handlers.registry.registry import HandlerRegistry
from tasker_core import EventBridge, Worker
from tasker_core._runtime.client import disconnect
from tests.docs.snippets import Reader, ReaderWithApp, snippets, write_files
from tests.support.repository import ROOT, repository_files
from tests.support.servers.private_postgres import copied
from tests.support.tables import for_each

FOLLOWED_ELSEWHERE = {
    "docs/built-in-steps.md": "tests/docs/test_built_in_steps.py",
    "docs/client.md": "tests/integration/two_transports/test_documentation.py",
    "docs/cli.md": "tests/acceptance/cli/test_documentation.py",
    "docs/decisions-and-batches.md": "tests/unit/engine/test_documentation.py",
    "docs/execution-modes.md": "tests/unit/execution/test_documentation.py",
    "docs/conditions.md": "tests/docs/test_conditions.py",
    "docs/inputs.md": "tests/docs/test_inputs.py",
    "docs/handlers.md": "tests/unit/handlers/test_docs.py",
    "docs/plugin-steps.md": "tests/docs/test_plugin_steps.py",
    "docs/writing-built-in-steps.md": "tests/docs/test_plugin_steps.py",
    "docs/messaging.md": "tests/contract/test_messaging_docs.py",
    "docs/resources.md": "tests/docs/test_resources.py",
    "docs/states.md": "tests/unit/engine/test_documentation.py",
    "docs/templates.md": "tests/unit/template/test_docs.py",
    "docs/your-project.md": "tests/docs/test_your_project.py",
    "docs/writing-plugins.md": "tests/docs/test_writing_plugins.py",
    "docs/tutorial-without-python.md": "tests/docs/test_tutorial_without_python.py",
    "docs/tutorial.md": "tests/acceptance/cli/test_documentation.py",
    "workflows/*/README.md": "tests/acceptance/cli/test_documentation.py",
}
"""Pages that have a test of their own, which knows more about them."""

IN_A_PROGRAM = {
    "docs/delays.md": """
name: reminder
namespace: shop
version: 1.0.0
steps: [{name: remind, handler: remind}]
""",
    "docs/waiting.md": """
name: settled
namespace: shop
version: 1.0.0
steps: [{name: settled, type: wait_for_event, event: payment.settled, timeout: 2h}]
""",
    "docs/schedules.md": (ROOT / "workflows" / "nightly_report" / "workflow.yaml").read_text("utf-8"),
    "docs/deadlines.md": """
name: report
namespace: shop
version: 1.0.0
steps: [{name: write, handler: write}]
""",
    "docs/resilience.md": """
name: paused_pay
namespace: payments
version: 1.0.0
steps: [{name: charge, handler: charge}]
---
name: order
namespace: shop
version: 1.0.0
steps: [{name: charge, handler: charge}]
""",
}
"""Pages whose Python speaks of an `app`: the templates that it knows."""


def pages() -> list[str]:
    return [str(path) for path in repository_files() if path.suffix == ".md"]


def follower(page: str) -> str | None:
    """The test that follows the page elsewhere."""
    return next((test for pattern, test in FOLLOWED_ELSEWHERE.items() if Path(page).match(pattern)), None)


FOLLOWED_HERE = [page for page in pages() if follower(page) is None and snippets((ROOT / page).read_text("utf-8"))]


@pytest.fixture(scope="module")
def own_server(tmp_path_factory: pytest.TempPathFactory, cluster: Path) -> Iterator[EmbeddedServer]:
    """The database that a reader's commands make, kept running between them."""
    folder = tmp_path_factory.mktemp("reader")
    server = EmbeddedServer.start(
        copied(cluster, folder / DEFAULT_DATA_DIR), settings={"fsync": "off"}, linger_seconds=1
    )
    upgrade(server.url)  # a page that begins with SQL may be the first one
    yield server
    server.stop()


@pytest.fixture
def folder(own_server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The reader's folder, with what lies beside the pages and the database; nothing in the environment."""
    folder = own_server.data_dir.parents[1]
    for name in ("workflows", "config"):
        (folder / name).symlink_to(ROOT / name)
    monkeypatch.chdir(folder)
    for name in ("DATABASE_URL", "TASKER_CONFIG_PATH", "TASKER_CONFIG_ROOT", "TASKER_ENV", "PYTHON_HANDLER_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TASKER_TEMPLATE_PATH", "none")  # a page may set it
    yield folder
    for left in folder.iterdir():
        if left.is_symlink() or left.is_file():
            left.unlink()
        elif left.name != DEFAULT_DATA_DIR.parts[0]:
            shutil.rmtree(left)


@pytest.fixture
def reader(own_server: EmbeddedServer, folder: Path) -> Iterator[Callable[[str], Reader]]:
    """Follows a page and tells about it; whatever the page leaves running is stopped."""
    readers: list[Reader] = []

    def follow(page: str) -> Reader:
        templates = IN_A_PROGRAM.get(page)
        readers.append(
            ReaderWithApp(folder, own_server.url, templates=templates) if templates else Reader(folder, own_server.url)
        )
        readers[-1].follow((ROOT / page).read_text("utf-8"))
        return readers[-1]

    yield follow
    for made in readers:
        made.close()
    Worker.reset_instance()
    disconnect()
    HandlerRegistry.reset_instance()
    EventBridge.reset_instance()


@pytest.mark.parametrize("page", FOLLOWED_HERE)
def test_a_page_can_be_followed(page: str, reader: Callable[[str], Reader]) -> None:
    reader(page)


def test_the_readme_s_first_workflow_greets(reader: Callable[[str], Reader]) -> None:
    outputs = reader("README.md").outputs

    assert '{"text": "Hello, Ada!"}' in outputs["tasker run hello --set name=Ada"]


def test_the_hooks_of_a_server_that_forks_start_and_stop_its_app(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files((ROOT / "docs" / "embedding.md").read_text("utf-8"), folder)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setitem(sys.modules, "shop", ModuleType("shop"))  # nothing is left of it at the end
    del sys.modules["shop"]
    hooks = runpy.run_path(str(folder / "gunicorn.conf.py"))
    engine = hooks["shop"].engine
    hooks["post_worker_init"](None)
    try:
        assert engine.run("welcome", {"email": "kim@example.org"}, timeout=60).succeeded
    finally:
        hooks["worker_exit"](None, None)
    with pytest.raises(UsageError, match="not started"):
        engine.tasks.list()


def test_the_readme_shows_ten_lines_of_each() -> None:
    shown = [snippet for snippet in snippets((ROOT / "README.md").read_text("utf-8")) if snippet.file]
    lines = {s.language: sum(bool(line.strip()) for line in s.text.splitlines()[1:]) for s in shown}

    assert lines.keys() == {"yaml", "python"}
    assert max(lines.values()) <= 10


def test_a_page_that_is_followed_elsewhere_is_named_there() -> None:
    for pattern, test in FOLLOWED_ELSEWHERE.items():
        matching = [page for page in pages() if Path(page).match(pattern)]
        assert matching, f"no page is {pattern}"
        text = (ROOT / test).read_text("utf-8")
        assert Path(pattern).name in text or "DOCS" in text, f"{test} does not follow {pattern}"


def test_the_index_lists_every_page_of_the_documentation() -> None:
    linked = set(re.findall(r"\]\(([\w/.-]+\.md)\)", (ROOT / "docs" / "README.md").read_text("utf-8")))

    there = {page for page in pages() if page.startswith("docs/")} - {"docs/README.md"}
    there -= {page for page in there if Path(page).match("docs/decisions/[0-9]*.md")}  # listed in their own index
    assert {f"docs/{link}" for link in linked} == there, "list the page in docs/README.md"


@pytest.mark.parametrize("plugin", sorted(path.name for path in (ROOT / "plugins").iterdir() if path.is_dir()))
def test_the_readme_of_a_plugin_says_what_each_of_its_files_holds(plugin: str) -> None:
    folder = ROOT / "plugins" / plugin
    listed = re.findall(r"^\| `(\w+\.py)` \|", (folder / "README.md").read_text("utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(path.name for path in folder.glob("*.py"))


@for_each(pages())
def test_links_to_files_lead_somewhere(page: str) -> None:
    text = re.sub(r"```.*?```", "", (ROOT / page).read_text("utf-8"), flags=re.DOTALL)
    links = re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", text)

    assert [link for link in links if not (ROOT / page).parent.joinpath(link).exists()] == []


def test_a_process_that_a_page_starts_has_a_configuration_or_says_that_it_needs_none() -> None:
    """Without one, `tasker worker` and `tasker orchestrator` refuse to start."""
    starts = re.compile(r"^(?!.*--no-config).*\btasker (?:worker|orchestrator)\b(?! list)", re.M)
    texts = {page: (ROOT / page).read_text("utf-8") for page in pages()}
    shown = {
        (page, line)
        for page, text in texts.items()
        for snippet in snippets(text)
        if snippet.language in ("sh", "console") and "TASKER_CONFIG_" not in text
        for line in starts.findall(snippet.text)
    }
    assert shown == set()
