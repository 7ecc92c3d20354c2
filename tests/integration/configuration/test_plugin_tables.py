"""`[plugins]`: which are on, with their tables checked, shown and documented like ours; unknown names are problems."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tasker.app.configured import UNCONFIGURED, configured, from_environment
from tasker.plugins.host import plugins_of
from tasker.services.configuration.loading import ConfigurationInvalid, assemble
from tasker.services.configuration.plugins import plugin_reports_of
from tasker.services.configuration.sources import read_layer
from tasker.settings.check import check
from tasker.settings.nested import nested
from tasker.settings.reference import reference
from tests.support.strangers import install_plugin

BELL = """
from tasker.plugins.hooks import hookimpl
given = []

@hookimpl
def tasker_settings():
    from tasker.settings.table import Table, text, whole

    class BellTable(Table):
        "A bell."

        tone: str = text("c", "Its tone.", variable="BELL_TONE")
        strokes: int = whole(1, 1, 12, "Strokes at once.")

    return BellTable

@hookimpl
def tasker_configured(settings): given.append(settings)
"""


@pytest.fixture
def bell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_plugin(tmp_path, monkeypatch, "bell", BELL)


def problems(folder: Path, text: str, **environ: str) -> list[tuple[str, str, str, str | None]]:
    file = folder / "merged.toml"
    file.write_text(text)
    try:
        assemble("worker", "test", [read_layer(file)], environ)
    except ConfigurationInvalid as error:
        return [(each.path, each.issue, each.fix, each.place) for each in error.problems]
    return []


@pytest.mark.parametrize(
    ("path", "value", "issue", "fix"),
    [
        ("strokes", 13, "Exceeds maximum allowed value (12)", "Reduce to 12 or less"),
        ("tome", "d", "This setting does not exist", "Did you mean plugins.bell.tone?"),
    ],
)
def test_the_settings_of_a_plugin_are_checked_like_ours(
    bell: None, path: str, value: Any, issue: str, fix: str
) -> None:
    (problem,) = check(nested({f"plugins.bell.{path}": value})).problems
    assert (problem.issue, problem.fix) == (issue, fix)
    assert "## plugins.bell\n\nA bell.\n" in reference()


def test_a_plugin_is_given_what_is_set_and_its_defaults_otherwise(bell: None) -> None:
    settings = check(nested({"plugins.bell.strokes": 3})).settings
    assert settings is not None
    for choice in (configured(settings).plugins, UNCONFIGURED.plugins):
        plugins_of(choice)
    assert [(each.tone, each.strokes) for each in sys.modules["bell_plugin"].given] == [("c", 3), ("c", 1)]


def test_a_variable_of_a_plugin_that_is_on_counts_without_any_file(bell: None) -> None:
    assert from_environment(environ={"BELL_TONE": "g"}).plugins.settings["bell"].tone == "g"
    off = from_environment(environ={"BELL_TONE": "g", "TASKER_PLUGINS_DISABLED": "bell"})
    assert (off.plugins.disabled, off.plugins.settings) == (("bell",), {})


def test_names_that_nobody_has_are_problems_with_the_place(bell: None, tmp_path: Path) -> None:
    found = problems(tmp_path, '[plugins]\nenabled = ["log"]\ndisabled = ["lgos", "bell"]\n')
    place = str(tmp_path / "merged.toml")
    assert found == [
        (
            "plugins.enabled",
            "No plugin of that name; installed: bell, command, files, llm, logs, notify, otel, prometheus, sentry, "
            "sql, webhooks",
            "Did you mean logs?",
            f"{place}:2",
        ),
        (
            "plugins.disabled",
            "No plugin of that name; installed: bell, command, files, llm, logs, notify, otel, prometheus, sentry, "
            "sql, webhooks",
            "Did you mean logs?",
            f"{place}:3",
        ),
    ]
    both = problems(tmp_path, "", TASKER_PLUGINS_ENABLED="bell", TASKER_PLUGINS_DISABLED="logs, bell")
    assert [each[:3] for each in both] == [
        ("plugins.enabled", "bell is in plugins.disabled too", "Keep only one of them")
    ]


def test_a_table_that_nobody_would_read_is_a_problem_and_one_of_a_disabled_plugin_is_left_alone(
    bell: None, tmp_path: Path
) -> None:
    (off,) = problems(tmp_path, '[plugins.logs]\npath = "x"\n')
    assert off[1:3] == ("This plugin is not on", "Add it to plugins.enabled")
    assert problems(tmp_path, '[plugins]\nenabled = ["logs"]\n[plugins.logs]\npath = "x"\n') == []
    assert problems(tmp_path, '[plugins]\ndisabled = ["bell"]\n[plugins.bell]\nanything = 7\n') == []


def test_a_plugin_that_is_switched_off_is_not_even_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_plugin(tmp_path, monkeypatch, "poison", "raise SystemExit('imported')")
    for name, text in (("TASKER_PLUGINS_DISABLED", ""), ("X", '[plugins]\ndisabled = ["${OFF:-poison}"]\n')):
        file = tmp_path / "merged.toml"
        file.write_text(text)
        made = from_environment(environ={name: "poison", "TASKER_CONFIG_PATH": str(file)})
        assert plugins_of(made.plugins).states() == ()
        assert "poison_plugin" not in sys.modules


@pytest.mark.parametrize(
    ("source", "issue"),
    [
        ("raise ValueError('not today')", "The plugin cannot be loaded: not today"),
        ("", "This plugin has no settings"),
        (BELL.replace("return BellTable", "return dict"), "must return a subclass of"),
    ],
)
def test_settings_of_a_plugin_that_cannot_have_them_are_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, issue: str
) -> None:
    install_plugin(tmp_path, monkeypatch, "odd", source)
    (found,) = problems(tmp_path, "[plugins.odd]\nx = 1\n")
    assert issue in found[1]
    assert found[2] == "See: tasker plugin show odd"


@pytest.mark.usefixtures("bell")
def test_who_looks_at_a_running_process_configures_no_plugin_again() -> None:
    settings = check(nested({"plugins.bell.tone": "g"})).settings
    assert settings is not None
    choice = configured(settings).plugins
    plugins = plugins_of(choice)
    given = sys.modules["bell_plugin"].given
    before = len(given)

    reports = {each.name: each for each in plugin_reports_of(choice, plugins)}

    assert (reports["bell"].status, reports["bell"].problem, list(reports["bell"].settings)) == (
        "on",
        None,
        ["tone", "strokes"],
    )
    assert (reports["sentry"].status, reports["sentry"].hooks) == ("off", ())
    assert len(given) == before
