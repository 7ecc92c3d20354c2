"""A stranger's backend that declares its table is checked, shown, explained, documented and redacted like ours."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tasker.app.configured import configured, from_environment
from tasker.errors import BackendUnavailable
from tasker.installed import backend_modules
from tasker.messaging import load_backend
from tasker.services.configuration.loading import ConfigurationInvalid, assemble
from tasker.services.configuration.sources import read_layer
from tasker.settings.catalogue import by_path, is_live
from tasker.settings.check import check
from tasker.settings.installed_tables import declared_table
from tasker.settings.nested import nested
from tasker.settings.reference import reference
from tests.support.strangers import install_backend

OWL = """
import tasker_memory

VARIABLES = ("OWL_URL",)

def create(settings):
    return tasker_memory.create({})

def settings_table():
    from typing import Annotated
    from tasker.settings.table import Table, text, url_of, whole

    class OwlTable(Table):
        "Owls that carry letters."

        url: Annotated[str, url_of("owl")] = text("owl://tower", "The owlery.", variable="OWL_URL")
        owls: int = whole(3, 1, 12, "Owls that fly at once.")
        poll_interval_ms: int = whole(
            500, 10, 10_000, "Pause between two looks.", overrules="common.queues.poll_interval_ms"
        )

    return OwlTable
"""
CLIENTS = {"aio_pika", "nats", "redis", "aiormq"}


@pytest.fixture
def owl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_backend(tmp_path, monkeypatch, "owls", "owl", "owl_post", OWL)


@pytest.mark.parametrize(
    ("path", "value", "issue", "fix"),
    [
        ("owls", 13, "Exceeds maximum allowed value (12)", "Reduce to 12 or less"),
        ("owls", "many", "Not a whole number", "Expected: 1 to 12"),
        ("owlz", 3, "This setting does not exist", "Did you mean common.queues.owl.owls?"),
        ("url", "http://tower", "Expected a URL that begins with owl://", "Write the whole URL"),
    ],
)
def test_its_settings_are_checked_like_ours(owl: None, path: str, value: Any, issue: str, fix: str) -> None:
    (problem,) = check(nested({f"common.queues.owl.{path}": value})).problems
    assert (problem.path, problem.issue, problem.fix) == (f"common.queues.owl.{path}", issue, fix)


def test_a_misspelt_table_names_the_one_that_was_meant(owl: None) -> None:
    (problem,) = check(nested({"common.queues.owll.owls": 3})).problems
    assert problem.fix == "Did you mean common.queues.owl?"


def test_its_variable_gives_a_value_without_any_file_and_reaches_it(owl: None) -> None:
    made = from_environment(environ={"OWL_URL": "owl://north", "TASKER_MESSAGING_BACKEND": "owl"})
    assert (made.backend, made.backend_settings) == ("owl", {"owl": {"url": "owl://north"}})


def test_what_overrules_a_setting_for_all_backends_counts_while_its_backend_is_chosen(owl: None) -> None:
    own = {"common.queues.owl.poll_interval_ms": 70, "common.queues.poll_interval_ms": 80}
    for chosen, expected in (("owl", 70), ("redis", 80)):
        settings = check(nested({**own, "common.queues.backend": chosen})).settings
        assert settings is not None
        made = configured(settings)
        assert (made.worker.events.lost_poll_ms, made.worker.events.poll_ms) == (expected, expected)
        assert made.backend_settings == {}
    assert is_live("common.queues.owl.poll_interval_ms")
    assert not is_live("common.queues.owl.owls")


def test_its_settings_are_explained_documented_and_redacted(owl: None, run: Callable[..., Result]) -> None:
    explained = json.loads(
        run(
            "explain",
            "common.queues.owl.url",
            "--format",
            "json",
            "--context",
            "complete",
            OWL_URL="owl://me:hunter2@n",
        ).output
    )
    assert (explained["variables"], explained["meaning"]) == (["OWL_URL"], "The owlery.")
    assert "hunter2" not in json.dumps(explained)
    assert "## common.queues.owl\n\nOwls that carry letters.\n" in reference()
    assert "| `owls` | whole number, 1 to 12 | `3` | Owls that fly at once. |" in reference()


@pytest.mark.parametrize(
    ("source", "issue"),
    [
        ("def settings_table(): return dict", "it must return a subclass of Table"),
        (OWL[OWL.index("def settings_table") :], "list every variable of the table there"),
    ],
)
def test_a_wrong_declaration_is_told_to_who_chooses_the_backend_and_harms_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, issue: str
) -> None:
    install_backend(tmp_path, monkeypatch, "wrong", "wrong", "wrong_post", f"create = None\n{source}")
    assert not [path for path in by_path() if path.startswith("common.queues.wrong")]
    file = tmp_path / "worker.toml"
    file.write_text('[common.queues]\nbackend = "wrong"\n')
    with pytest.raises(ConfigurationInvalid) as caught:
        assemble("worker", "test", [read_layer(file)], {})
    (problem,) = caught.value.problems
    assert (problem.path, problem.fix, problem.place) == ("common.queues.backend", issue, f"{file}:2")


@pytest.mark.parametrize("name", ["backend", "orchestration_queues", "to_dict", "a.b"])
def test_a_name_that_the_settings_have_for_something_else_is_no_table(name: str) -> None:
    module = dict(backend_modules())["redis"]
    with pytest.raises(BackendUnavailable, match=f"the settings of messaging backend '{name}'"):
        declared_table(name, module)


def test_a_backend_that_cannot_be_imported_is_no_problem_until_it_is_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_backend(tmp_path, monkeypatch, "broken", "broken", "broken_post", "import a_client_that_is_not_here")
    assert from_environment(environ={"RABBITMQ_URL": "amqp://h/"}).backend_settings == {
        "rabbitmq": {"url": "amqp://h/"}
    }
    with pytest.raises(BackendUnavailable, match="needs 'a_client_that_is_not_here'") as caught:
        load_backend("broken", {})
    assert caught.value.hint == "pip install 'broken[broken]'"


def test_an_extra_that_is_missing_is_told_when_the_backend_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = "def create(settings):\n    import a_client_that_is_not_here"
    install_backend(tmp_path, monkeypatch, "lazy", "lazy", "lazy_post", source)
    with pytest.raises(BackendUnavailable, match="needs 'a_client_that_is_not_here'"):
        load_backend("lazy", {})


@pytest.mark.parametrize("variables", [{}, {"NATS_URL": "nats://h"}])
def test_reading_the_settings_imports_no_client_of_a_backend(variables: dict[str, str]) -> None:
    code = f"from tasker.app.configured import from_environment as f; f(environ={variables}); import sys; "
    code += "print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not CLIENTS & set(done.stdout.split())
