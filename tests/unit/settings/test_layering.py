"""Merging, placeholders, older spellings, lines of files."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasker.settings.catalogue import by_path
from tasker.settings.check import check
from tasker.settings.nested import deep_merge, find, leaves, nested, without
from tasker.settings.sources import ALIASES, Substitution, canonical, line_of
from tasker.settings.toml_text import toml_text

KEYS = st.text('abc_- é"\\n[=', min_size=1, max_size=4)
PLAIN = st.one_of(
    st.booleans(), st.integers(-(2**40), 2**40), st.floats(allow_nan=False), st.text(), st.dates(), st.datetimes()
)
VALUES = st.recursive(
    PLAIN, lambda inner: st.one_of(st.lists(inner, max_size=3), st.lists(st.dictionaries(KEYS, inner, max_size=2)))
)
TABLES = st.recursive(
    st.dictionaries(KEYS, st.one_of(PLAIN, st.lists(VALUES, max_size=3)), max_size=4),
    lambda inner: st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


def test_the_environment_wins_key_by_key_and_the_rest_is_inherited() -> None:
    base = {"common": {"database": {"pool": {"max_connections": 30, "min_connections": 8}}}}
    production = {"common": {"database": {"pool": {"max_connections": 50}}}}

    pool = deep_merge(base, production)["common"]["database"]["pool"]

    assert pool == {"max_connections": 50, "min_connections": 8}
    assert base["common"]["database"]["pool"]["max_connections"] == 30


def test_a_list_replaces_a_list_and_a_table_replaces_a_value() -> None:
    assert deep_merge({"a": [1, 2, 3], "b": 1}, {"a": [9], "b": {"c": 2}}) == {"a": [9], "b": {"c": 2}}


@given(TABLES, TABLES)
def test_merging_keeps_every_value_of_the_upper_layer(lower: dict[str, Any], upper: dict[str, Any]) -> None:
    merged = deep_merge(lower, upper)
    assert all(find(merged, path) == value for path, value in leaves(upper))
    assert deep_merge(merged, upper) == merged


@given(TABLES)
def test_what_is_written_as_toml_is_read_as_the_same(tables: dict[str, Any]) -> None:
    assert tomllib.loads(toml_text(tables)) == nested(dict(leaves(tables)))


def test_values_and_tables_can_be_taken_out() -> None:
    tables = {"a": {"b": 1, "c": {"d": 2}}}
    assert without(tables, frozenset({"a.c"})) == {"a": {"b": 1}}


def replaced(tables: dict[str, Any], **variables: str) -> tuple[dict[str, Any], list[str]]:
    substitution = Substitution(variables.get)
    return substitution.tables(tables), [f"{each.path}: {each.issue}" for each in substitution.problems]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${HOST}", "db"),
        ("${HOST:-other}", "db"),
        ("${ABSENT:-other}", "other"),
        ("${EMPTY:-other}", "other"),
        ("${ABSENT:-}", ""),
        ("postgresql://${HOST}:${PORT:-5432}/x", "postgresql://db:5432/x"),
        ("${ABSENT:-redis://localhost:6379}", "redis://localhost:6379"),
        ("no $HOST here, 5$", "no $HOST here, 5$"),
    ],
)
def test_placeholders_become_values(text: str, value: str) -> None:
    assert replaced({"a": [{"b": 1}, text], "c": {"d": text}}, HOST="db", EMPTY="") == (
        {"a": [{"b": 1}, value], "c": {"d": value}},
        [],
    )


def test_every_variable_that_is_missing_is_named_with_its_place() -> None:
    tables = {"a": "${ONE}", "b": {"c": ["${TWO:-x}", "${THREE}/${FOUR}"]}, "d": "${broken"}
    assert replaced(tables)[1] == [
        "a: The environment variable ONE is not set",
        "b.c[1]: The environment variable THREE, FOUR is not set",
        "d: Incomplete placeholder",
    ]


def test_a_variable_that_is_set_but_empty_needs_a_default_even_an_empty_one() -> None:
    tables = {"a": "${EMPTY}", "b": "${EMPTY:-}", "c": "${ABSENT}${EMPTY}"}
    assert replaced(tables, EMPTY="") == (
        {"a": "${EMPTY}", "b": "", "c": "${ABSENT}${EMPTY}"},
        ["a: The environment variable EMPTY is set but empty", "c: The environment variable ABSENT is not set"],
    )


def test_a_placeholder_may_stand_for_a_number_a_switch_and_a_list() -> None:
    tables = nested(
        {
            "common.database.pool.max_connections": "${MANY}",
            "common.backoff.jitter_enabled": "${OFF}",
            "common.backoff.backoff_multiplier": "${FACTOR:-1.5}",
            "common.backoff.default_backoff_seconds": "${DELAYS}",
            "common.task_templates.search_paths": ["${HOME}/*.yaml"],
        }
    )
    values, _ = replaced(tables, MANY="40", OFF="False", DELAYS="1, 2", HOME="templates")
    settings = check(values).settings
    assert settings is not None
    assert settings.common.database.pool.max_connections == 40
    assert settings.common.backoff.jitter_enabled is False
    assert settings.common.backoff.backoff_multiplier == 1.5
    assert settings.common.backoff.default_backoff_seconds == (1, 2)
    assert settings.common.task_templates.search_paths == ("templates/*.yaml",)


def test_a_placeholder_with_another_kind_of_value_is_an_error() -> None:
    values, _ = replaced(nested({"common.database.pool.max_connections": "${MANY}"}), MANY="many")
    (problem,) = check(values).problems
    assert (problem.value, problem.issue) == ("many", "Not a whole number")


def test_older_spellings_are_read_like_the_present_ones() -> None:
    assert set(ALIASES.values()) & set(by_path())
    tables, problems = canonical(nested({"orchestration.decision_points.max_depth": 3}))
    assert (tables, problems) == (nested({"orchestration.decision_points.max_decision_depth": 3}), [])


def test_an_older_and_the_present_spelling_together_are_a_problem() -> None:
    table = "orchestration.decision_points"
    _, problems = canonical(nested({f"{table}.max_depth": 3, f"{table}.max_decision_depth": 4}))
    assert [problem.path for problem in problems] == [f"{table}.max_depth"]


def test_conflict_of_spellings_leaves_other_older_spellings() -> None:
    table = "orchestration.decision_points"
    given = {f"{table}.max_depth": 3, f"{table}.max_decision_depth": 4, f"{table}.warn_threshold": 2}
    tables, problems = canonical(nested(given))
    assert tables == nested({f"{table}.max_decision_depth": 4, f"{table}.warn_threshold_depth": 2})
    assert len(problems) == 1


FILE = """# a comment
[common.database] # the database
url = "x"
pool.max_connections = 3

  [ common . "queues" ]
backend="pgmq"
rabbitmq = { url = "amqp://x", prefetch_count = 5 }
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("common.database", 2),
        ("common.database.url", 3),
        ("common.database.pool.max_connections", 4),
        ("common.queues.backend", 7),
        ("common.queues.rabbitmq.prefetch_count", 8),
        ("common.database.url[0]", 3),
        ("worker.web", None),
    ],
)
def test_the_line_of_a_key_is_found(path: str, line: int | None) -> None:
    assert line_of(FILE, path) == line
