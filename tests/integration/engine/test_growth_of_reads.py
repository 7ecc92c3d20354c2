"""A read of one task, of the newest or of those that match a filter costs no more after many tasks have finished.

The same calls as those of `make bench-growth`, among fewer tasks: no plan may read more among ten times as many.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.benchmarks.growth.finished import BOUNDED, EACH, FLAT, GROWING, MOST, SAMPLES, SCATTERED, Scene
from tests.support.engine_fixture import Lab
from tests.support.servers.databases import Server

FEW, MANY = 200, 2_000


@pytest.fixture(scope="module")
def scenes(server: Server, migrated_template: str) -> Iterator[tuple[Scene, Scene]]:
    with server.database(migrated_template) as small, server.database(migrated_template) as large:
        labs = [Lab(small), Lab(large)]
        yield Scene.of(labs[0], FEW), Scene.of(labs[1], MANY)
        for lab in labs:
            lab.close()


@pytest.mark.parametrize("name", FLAT | SAMPLES)
def test_a_read_visits_no_more_pages_among_many_finished_tasks(scenes: tuple[Scene, Scene], name: str) -> None:
    small, large = (scene.work((FLAT | SAMPLES)[name]) for scene in scenes)

    growing = SCATTERED if name in SAMPLES else GROWING
    assert large.pages <= small.pages * growing + 20, (small.pages_of, large.pages_of, large.heaviest)


@pytest.mark.parametrize("name", BOUNDED)
def test_a_read_of_a_bounded_part_visits_no_more_pages_than_that(scenes: tuple[Scene, Scene], name: str) -> None:
    _, large = scenes
    assert 0 < large.work(BOUNDED[name]).pages <= MOST


@pytest.mark.parametrize("name", EACH)
def test_a_read_of_every_task_visits_as_many_pages_for_each(scenes: tuple[Scene, Scene], name: str) -> None:
    small, large = (scene.work(EACH[name]) for scene in scenes)

    assert large.pages / MANY <= small.pages / FEW * SCATTERED, (small.pages_of, large.pages_of)
