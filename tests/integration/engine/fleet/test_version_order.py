"""Versions of a template stand in the order of SemVer, whatever order their texts have."""

from __future__ import annotations

from dataclasses import replace

from tasker.settings.retention import RetentionRule
from tests.integration.engine.fleet.test_retention import aged, prune
from tests.support.engine_fixture import Lab, ok

IN_ORDER = [
    *("0.9", "1.9.0", "1.10.0-alpha", "1.10.0-alpha.1", "1.10.0-alpha.beta", "1.10.0-beta.2", "1.10.0-beta.11"),
    *("1.10.0-rc.1", "1.10.0", "1.10.0+11", "1.10.0+5", "1.10.1-rc.1+5", "1.10.1", "1.10.1.4", "2.0.0", "10.0.0"),
    *("2024.9", "2024.10", "20241001000000000000000001", "v2"),
]


def test_numbers_count_by_their_size_and_builds_by_their_text(lab: Lab) -> None:
    statement = """select version from unnest(%s::text[]) as version
      order by tasker.version_order(version) collate "C", version collate "C" """

    assert [row.version for row in lab.observer.rows(statement, sorted(IN_ORDER))] == IN_ORDER


def test_what_a_prune_would_delete_stands_in_the_order_of_versions(lab: Lab) -> None:
    for version in ("1.10.0", "1.9.0", "1.10.0+build", "1.10.0-rc.1"):
        tasks = lab.submit(replace(lab.chain(1), version=version))
        lab.one.advance(*map(ok, lab.one.claim()), dead_letters=False)
        aged(lab, 31, *tasks)

    found = prune(lab, RetentionRule(completed_days=30), dry_run=True)

    assert [each.version for each in found] == ["1.9.0", "1.10.0-rc.1", "1.10.0", "1.10.0+build"]
