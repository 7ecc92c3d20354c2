"""Hooks about a process: once each, in their order, and all have run when the process has stopped."""

from __future__ import annotations

from pathlib import Path

import pytest

import tasker
from tests.support.strangers import install_plugin

HOOKS = ("tasker_process_started", "tasker_process_stopping", "tasker_process_stopped")
SOURCE = "from tasker.plugins.hooks import hookimpl\nheard = []\n" + "".join(
    f"\n@hookimpl\ndef {hook}(process): heard.append(({hook!r}, process.identity))\n" for hook in HOOKS
)


async def test_plugin_is_notified_of_start_and_end_of_a_process(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_plugin(tmp_path, monkeypatch, "listener", SOURCE)
    async with tasker.App(database_url) as app:
        await app.tasks.list()
    import listener_plugin  # type: ignore[import-not-found]

    assert [hook for hook, _ in listener_plugin.heard] == [*HOOKS]
    assert len({identity for _, identity in listener_plugin.heard}) == 1
