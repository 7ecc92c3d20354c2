"""The options of `App`, `SyncApp` and the ways to submit: each checked by name, and services only while started."""

from __future__ import annotations

import inspect
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any, get_type_hints

import pytest

import tasker
from tasker.app.lifecycle import RunOptions, SubmitOptions
from tasker.errors import UsageError
from tasker.services.operators.pauses import PauseOptions, PauseTarget
from tasker.services.submission.submit import Submission, SubmissionOptions

ROOT = Path(__file__).parents[3]
SERVICES = ["tasks", "steps", "pauses", "plans", "workers", "views"]
ONLY_ASYNCHRONOUS = ["checks", "repairs", "admission", "registry", "messaging"]


def test_type_checkers_look_at_programs_with_wrong_options() -> None:
    """`make check` finds each mistake in `tests/typed`: what is ignored there and is none is an error of its own."""
    mypy = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]
    assert mypy["strict"]
    assert "tests.typed" in mypy["packages"]


def test_a_request_takes_what_its_options_name() -> None:
    assert set(get_type_hints(SubmissionOptions)) | {"context", "parent"} == {
        field.name for field in fields(Submission)
    }
    assert set(get_type_hints(SubmitOptions)) | {"on_duplicate"} == set(get_type_hints(RunOptions))
    assert set(get_type_hints(PauseOptions)) | {"namespace"} == set(inspect.signature(PauseTarget.of).parameters)


def test_the_synchronous_app_shows_the_parameters_of_the_other_one() -> None:
    assert inspect.signature(tasker.SyncApp) == inspect.signature(tasker.App)


@pytest.mark.parametrize("kind", [tasker.App, tasker.SyncApp])
def test_an_option_that_does_not_exist_is_a_type_error(kind: Any) -> None:
    with pytest.raises(TypeError, match="bakend"):
        kind(bakend="memory")


@pytest.mark.parametrize(
    ("kind", "name", "opened_by"),
    [(tasker.App, name, "`async with tasker.App() as app:`") for name in [*SERVICES, *ONLY_ASYNCHRONOUS]]
    + [(tasker.SyncApp, name, "`with tasker.SyncApp() as app:`") for name in [*SERVICES, "database_url"]],
)
def test_a_service_of_an_app_that_is_not_started_says_so(kind: Any, name: str, opened_by: str) -> None:
    with pytest.raises(UsageError, match="is not started") as caught:
        getattr(kind(), name)
    assert opened_by in str(caught.value.hint)


async def test_what_is_asked_of_an_app_that_is_not_started_says_so() -> None:
    app = tasker.App()
    task = "01900000-0000-7000-8000-000000000000"
    for asked in (
        app.submit("a/b"),
        app.run("a/b"),
        app.wait(task),
        app.finished(task),
        app.pause("a"),
        app.resume("a"),
    ):
        with pytest.raises(UsageError, match="this App is not started"):
            await asked
    await app.stop()
    assert app.runtime is None
