"""What a user's import sets for its whole process changes neither how steps run nor how a worker stops."""

from __future__ import annotations

import json
import signal
from itertools import chain
from pathlib import Path

import pytest

from tests.support.command_line import invoke, write_workflow
from tests.support.fleets.fleet import Fleet
from tests.support.fleets.oracle import Oracle
from tests.support.fleets.submitting import submit_folder
from tests.support.waiting import until

pytestmark = pytest.mark.slow

TEMPLATE = """
    name: settings
    namespace: shop
    version: 1.0.0
    steps:
      - {name: thread, handler: shop.plain}
      - {name: loop, handler: shop.coroutine}
      - {name: process, handler: shop.plain, execution: {mode: process}}
      - {name: process_loop, handler: shop.coroutine, execution: {mode: process}}
"""
HANDLERS = """
from tasker.step_handler import step_handler

@step_handler("shop.plain")
def plain():
    return {"text": "Grüße", "sum": 0.1 + 0.2}

@step_handler("shop.coroutine")
async def coroutine():
    return {"text": "Grüße", "sum": 0.1 + 0.2}
"""
POLICY = """
import asyncio

class Policy(asyncio.events.BaseDefaultEventLoopPolicy):
    _loop_factory = asyncio.SelectorEventLoop

asyncio.set_event_loop_policy(Policy())
"""
SETTINGS = {
    "sockets": "import socket; socket.setdefaulttimeout(0.5)",
    "non-blocking sockets": "import socket; socket.setdefaulttimeout(0)",
    "signal handlers": """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
signal.set_wakeup_fd(-1)
""",
    "event loop policy": POLICY,
    "start method": "import multiprocessing; multiprocessing.set_start_method('spawn')",
    "warnings as errors": "import warnings; warnings.simplefilter('error')",
    "limits": "import sys; sys.setrecursionlimit(150); sys.setswitchinterval(1e-6)",
    "files": "import os, tempfile; os.umask(0o777); os.chdir(tempfile.mkdtemp())",
    "locale and numbers": """
import decimal, locale
locale.setlocale(locale.LC_ALL, 'C')
decimal.getcontext().prec = decimal.DefaultContext.prec = 2
""",
    "hooks": """
import gc, sys, threading
sys.excepthook = threading.excepthook = lambda *_: 1 / 0
gc.disable()
""",
}


TOGETHER = (
    ("sockets", "start method", "warnings as errors", "limits", "files", "locale and numbers"),
    ("non-blocking sockets", "signal handlers", "event loop policy", "hooks"),
)
"""Which of them one import sets: each worker takes as long to start as all its settings take to fail."""


def test_every_setting_is_set_by_one_import() -> None:
    assert sorted(chain.from_iterable(TOGETHER)) == sorted(SETTINGS)


@pytest.mark.parametrize("settings", TOGETHER, ids=lambda settings: settings[0])
def test_settings_of_a_users_import_disturb_no_step_and_no_stop(
    database_url: str, fleet: Fleet, oracle: Oracle, tmp_path: Path, settings: tuple[str, ...]
) -> None:
    workflow = write_workflow(tmp_path / "settings", TEMPLATE, "")
    lines = "\n".join(SETTINGS[setting] for setting in settings)
    (workflow / "handlers.py").write_text(f"{lines}\n{HANDLERS}")
    fleet.worker("one", str(workflow))
    task = submit_folder(database_url, workflow)

    oracle.wait_for_the_end([task])
    shown = json.loads(invoke("task", "show", task, "--format", "json", database=database_url).output)
    results = {step["name"]: (step["state"], step["attempts"], step["error"]) for step in shown["steps"]}
    assert results == dict.fromkeys(("thread", "loop", "process", "process_loop"), ("complete", 1, None))

    fleet.signal("one", signal.SIGTERM)
    until(lambda: fleet.ended("one"), "the worker has ended", limit=30, show=lambda: fleet.log("one"))
    assert "Traceback" not in fleet.log("one")


def test_a_signal_handler_of_a_late_import_does_not_keep_a_worker_from_stopping(
    database_url: str, fleet: Fleet, oracle: Oracle, tmp_path: Path
) -> None:
    template = TEMPLATE.replace("shop.plain", "shop_late.plain").replace("shop.coroutine", "shop_late.coroutine")
    workflow = write_workflow(tmp_path / "settings", template, "")
    (tmp_path / "shop_late.py").write_text(f"{SETTINGS['signal handlers']}\n{HANDLERS}")
    task = submit_folder(database_url, workflow)
    fleet.worker("one", "--namespace", "shop", environment={"PYTHONPATH": str(tmp_path)})

    oracle.wait_for_the_end([task])
    fleet.signal("one", signal.SIGTERM)
    until(lambda: fleet.ended("one"), "the worker has ended", limit=30, show=lambda: fleet.log("one"))
