"""Every page can be followed: what it shows is run, on the embedded database, as a reader would."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tasker.client import disconnect
from tasker.db.embedded import EmbeddedServer
from tasker.db.embedded.server import DEFAULT_DATA_DIR
from tasker.event_bridge import EventBridge
from tasker.handler import HandlerRegistry
from tasker.worker import Worker
from tests.docs.snippets import Reader, snippets

ROOT = Path(__file__).parents[2]
HIDDEN = {".git", ".venv", ".tasker", ".pytest_cache", ".hypothesis", "node_modules"}
FOLLOWED_ELSEWHERE = {
    "docs/cli.md": "tests/acceptance/test_cli_documentation.py",
    "docs/decisions-and-batches.md": "tests/unit/lifecycle/test_documentation.py",
    "docs/execution-modes.md": "tests/unit/execution/test_documentation.py",
    "docs/handlers.md": "tests/unit/handlers/test_docs.py",
    "docs/messaging.md": "tests/contract/test_messaging_docs.py",
    "docs/states.md": "tests/unit/lifecycle/test_documentation.py",
    "docs/templates.md": "tests/unit/template/test_docs.py",
    "docs/tutorial.md": "tests/acceptance/test_cli_documentation.py",
    "workflows/*/README.md": "tests/acceptance/test_cli_documentation.py",
}
"""Pages that have a test of their own, which knows more about them."""


def pages() -> list[str]:
    found = (path.relative_to(ROOT) for path in ROOT.rglob("*.md"))
    return sorted(str(path) for path in found if not HIDDEN & set(path.parts))


def follower(page: str) -> str | None:
    """The test that follows the page elsewhere."""
    return next((test for pattern, test in FOLLOWED_ELSEWHERE.items() if Path(page).match(pattern)), None)


FOLLOWED_HERE = [page for page in pages() if follower(page) is None and snippets((ROOT / page).read_text("utf-8"))]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    """The database that a reader's commands make, kept running between them."""
    server = EmbeddedServer.start(tmp_path_factory.mktemp("data"), settings={"fsync": "off"}, linger_seconds=1)
    yield server
    server.stop()


@pytest.fixture
def reader(server: EmbeddedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    """A folder with what lies beside the pages; nothing in the environment."""
    for folder in ("workflows", "config"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    (tmp_path / DEFAULT_DATA_DIR).parent.mkdir()
    (tmp_path / DEFAULT_DATA_DIR).symlink_to(server.data_dir)
    monkeypatch.chdir(tmp_path)
    for name in ("DATABASE_URL", "TASKER_CONFIG_PATH", "TASKER_CONFIG_ROOT", "TASKER_ENV", "PYTHON_HANDLER_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TASKER_TEMPLATE_PATH", "none")  # a page may set it
    reader = Reader(tmp_path, server.url)
    yield reader
    reader.close()
    Worker.reset_instance()
    disconnect()
    HandlerRegistry.reset_instance()
    EventBridge.reset_instance()


@pytest.mark.parametrize("page", FOLLOWED_HERE)
def test_a_page_can_be_followed(page: str, reader: Reader) -> None:
    reader.follow((ROOT / page).read_text("utf-8"))


def test_the_readme_s_first_workflow_greets(reader: Reader) -> None:
    reader.follow((ROOT / "README.md").read_text("utf-8"))

    assert '{"text": "Hello, Ada!"}' in reader.outputs["tasker run hello --set name=Ada"]


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
    assert {f"docs/{link}" for link in linked} == there, "list the page in docs/README.md"


@pytest.mark.parametrize("page", pages())
def test_links_to_files_lead_somewhere(page: str) -> None:
    text = re.sub(r"```.*?```", "", (ROOT / page).read_text("utf-8"), flags=re.DOTALL)
    links = re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", text)

    assert [link for link in links if not (ROOT / page).parent.joinpath(link).exists()] == []
