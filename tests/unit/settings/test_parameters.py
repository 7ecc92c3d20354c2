"""Every published parameter is there, with its default and its range, or is refused with a reason."""

from __future__ import annotations

from functools import partial
from typing import Any

from tasker.settings import check as checking
from tasker.settings.catalogue import Parameter, by_path, parameters, single_process, tables
from tasker.settings.nested import covering, deep_merge, find, nested
from tasker.settings.refused_keys import REFUSED
from tests.support.tables import for_each
from tests.unit.settings.published import OTHER_DEFAULT, OWN, published, refused

check = partial(checking.check, reserved={})  # what is reserved has its form already

PUBLISHED = published()
IN_THE_CHAPTER_ON_AUTHENTICATION = (
    "config_endpoint_enabled",
    "jwt_verification_method",
    "jwks_url",
    "jwks_refresh_interval_seconds",
    "permissions_claim",
    "strict_validation",
    "log_unknown_permissions",
    "api_keys_enabled",
    "api_keys",
)
"""What the published reference leaves out."""
RANGED = [parameter for parameter in parameters() if parameter.low is not None]


def test_all_246_published_parameters_are_accounted_for() -> None:
    later = {path for path in PUBLISHED if path.rpartition(".")[2] in IN_THE_CHAPTER_ON_AUTHENTICATION}
    assert len(PUBLISHED) - len(later) + len(OTHER_DEFAULT) + len(refused()) == 246
    assert set(by_path()) == set(PUBLISHED) | OTHER_DEFAULT | OWN


@for_each(PUBLISHED)
def test_a_published_parameter_has_its_default_and_its_range(path: str) -> None:
    default, bounds = PUBLISHED[path]
    parameter = by_path()[path]
    found = list(parameter.default) if isinstance(parameter.default, tuple) else parameter.default
    assert (found, type(found)) == (default, type(default))
    if bounds is not None:
        assert (parameter.low, parameter.high) == bounds


@for_each(refused())
def test_a_published_parameter_without_a_meaning_here_is_refused_with_the_reason(path: str) -> None:
    (problem,) = check(nested({path: 7})).problems
    assert covering(path, REFUSED)
    assert path.startswith(problem.path)
    assert len(problem.issue) > 15
    assert len(problem.fix) > 10


def accepted(path: str, value: Any) -> bool:
    """Whether the value is in range; what it must agree with elsewhere is set aside."""
    result = check(nested({path: value}))
    return not [each for each in result.problems if "allowed value" in each.issue or each.issue.startswith("Not a")]


def step(parameter: Parameter) -> float:
    return 1 if parameter.kind == "whole number" else 0.01


@for_each(RANGED)
def test_a_range_holds_at_both_ends(parameter: Parameter) -> None:
    assert parameter.low is not None
    assert parameter.high is not None
    for end, outside in ((parameter.low, -step(parameter)), (parameter.high, step(parameter))):
        assert accepted(parameter.path, end)
        (problem,) = check(nested({parameter.path: end + outside})).problems
        assert "allowed value" in problem.issue
        assert str(end) in problem.issue
        assert str(end) in problem.fix


@for_each(parameters())
def test_a_value_of_another_kind_is_an_error_with_the_kind_that_is_wanted(parameter: Parameter) -> None:
    wrong: Any = 7 if parameter.kind in ("text", "list", "true or false") else "seven"
    (problem,) = check(nested({parameter.path: wrong})).problems
    assert (problem.path, problem.value) == (parameter.path, wrong)
    assert problem.fix.startswith(("Expected: ", "Use one of: "))


@for_each(parameters())
def test_every_parameter_and_its_table_say_what_they_mean(parameter: Parameter) -> None:
    assert parameter.meaning.endswith(".")
    assert tables()[parameter.path.rpartition(".")[0]].endswith((".", ")"))
    assert parameter.range
    assert all(name.isupper() for name in parameter.variables)


def test_numbers_are_not_text_and_switches_are_not_numbers() -> None:
    for wrong in ("25", True, 25.0):
        assert not accepted("common.database.pool.max_connections", wrong)
    for wrong in (1, "true"):
        assert check(nested({"common.cache.enabled": wrong})).problems
    for wrong in (float("nan"), float("inf")):
        assert check(nested({"common.backoff.backoff_multiplier": wrong})).problems


def test_the_defaults_of_a_single_process_are_settings_that_hold() -> None:
    assert set(single_process()) <= set(by_path())
    settings = check(nested(single_process())).settings
    assert settings is not None
    merged = deep_merge(settings.to_dict(), nested(single_process()))
    assert all(find(merged, path) == value for path, value in single_process().items())
    assert all(value != by_path()[path].default for path, value in single_process().items())


def test_the_narrowest_entry_that_covers_a_path_counts() -> None:
    table = {"a": "wide", "a.b": "narrower", "a.b.c": "exact", "a.b.c.d.e": "deeper"}

    assert covering("a.b.c.d", table) == "exact"
    assert covering("a.b.x", table) == "narrower"
    assert covering("b", table) is None
