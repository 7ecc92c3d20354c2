"""Pictures of every page, at two widths, of a server on which example tasks run.

    python -m tools.screenshots FOLDER [--data-dir FOLDER]    # all of them, to be looked at
    python -m tools.screenshots --docs                        # the three of the documentation, again

It needs Chromium, as the tests of pages do, and takes about a minute.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from playwright.sync_api import Browser, sync_playwright

from tests.support.servers import browser as browsers
from tools.feed import ROOT

DOCS = ROOT / "docs" / "images"
WIDTHS = (360, 1280)
DOCUMENTED = (("overview", "overview", "light"), ("task", "task-failed", "light"), ("template", "template", "dark"))
"""The pictures of the documentation: the name of the file, what it shows, by which light."""
FILLING_SECONDS = 25.0
"""Until there is something to see everywhere."""


def main(arguments: list[str]) -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(prog="tools.screenshots", description="Pictures of every page.")
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--docs", action="store_true")
    given = parser.parse_args(arguments)
    program = browsers.program()
    if program is None or not (given.folder or given.docs):
        parser.error(browsers.ABSENT if program is None else "name a folder, or --docs")
    with _fed() as root, sync_playwright() as driver:
        options = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = driver.chromium.launch(executable_path=program, args=options)
        for path in _documented(browser, root) if given.docs else _all(browser, root, given.folder):
            print(path)
        browser.close()
    return 0


@contextmanager
def _fed() -> Iterator[str]:
    """A server with example tasks: its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "tools.feed",
            "--port",
            str(port),
            "--every",
            "0.4",
            "--data-dir",
            f"{folder}/pg",
        ]
        feed = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            root = f"http://127.0.0.1:{port}"
            while not _has_failed(root):
                time.sleep(0.5)
            time.sleep(FILLING_SECONDS)
            yield root
        finally:
            feed.send_signal(signal.SIGINT)
            feed.wait(60)


def _has_failed(root: str) -> bool:
    try:
        return bool(_tasks(root, "error"))
    except httpx.HTTPError:
        return False


def _tasks(root: str, status: str) -> list[str]:
    found = httpx.get(f"{root}/v1/tasks", params={"status": status, "per_page": 5}).json()
    return [task["task_uuid"] for task in found.get("tasks", ())]


def _pages(root: str) -> dict[str, str]:
    """Addresses below `/ui` by the names of their pictures."""
    failed, done = _tasks(root, "error")[0], _tasks(root, "complete")[0]
    template = "templates/payments/payment_processing/1.0.0"
    entry = httpx.get(f"{root}/v1/dlq/task/{failed}").json()["dlq_entry_uuid"]
    return {
        "overview": "",
        "tasks": "tasks",
        "task": f"tasks/{done}",
        "task-failed": f"tasks/{failed}?step=authorize_payment",
        **{f"task-{view}": f"tasks/{done}?view={view}" for view in ("timeline", "logs", "history", "data")},
        "bulk": f"tasks/bulk?action=retry&task={failed}",
        "templates": "templates",
        "template": template,
        "template-yaml": f"{template}?view=yaml",
        "template-versions": f"{template}?view=versions",
        "submit": f"{template}/submit",
        "editor": "templates/new",
        "dead-letters": "dead-letters",
        "dead-letter-groups": "dead-letters/groups",
        "dead-letter-entries": "dead-letters/entries",
        "replays": "dead-letters/replays",
        "stale": "dead-letters/stale",
        "dead-letter": f"dead-letters/entries/{entry}",
        "fleet": "fleet",
        "events": "events",
        "settings": "settings",
        "doctor": "settings/doctor",
        "actions": "settings/actions",
        "keys": "help",
    }


def _all(browser: Browser, root: str, folder: Path) -> Iterator[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    for name, address in _pages(root).items():
        for width in WIDTHS:
            for scheme in ("light", "dark") if width == max(WIDTHS) else ("light",):
                path = folder / f"{name}-{width}{'-dark' if scheme == 'dark' else ''}.png"
                yield _picture(browser, f"{root}/ui/{address}".rstrip("/"), path, width, scheme, whole=True)


def _documented(browser: Browser, root: str) -> Iterator[Path]:
    DOCS.mkdir(parents=True, exist_ok=True)
    pages = _pages(root)
    for name, shown, scheme in DOCUMENTED:
        address = f"{root}/ui/{pages[shown]}".rstrip("/")
        yield _picture(browser, address, DOCS / f"{name}.png", 1200, scheme, whole=False)


def _picture(browser: Browser, url: str, path: Path, width: int, scheme: str, *, whole: bool) -> Path:
    context = browser.new_context(viewport={"width": width, "height": 760}, color_scheme=scheme)  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(url)
    page.screenshot(path=path, full_page=whole)
    context.close()
    return path


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
