"""Random graphs with random words and random failures: the rows of the engine are those of a naive model."""

from __future__ import annotations

from random import Random

from tests.integration.engine.protocol.failing.conftest import Begin
from tests.support.model.failing import drawn, end_of, expected, text


async def test_rows_are_those_of_the_naive_model(begin: Begin) -> None:
    for seed in range(25):
        random = Random(seed)
        graph = drawn(random)
        failing = {name for name in graph if random.random() < 0.45}

        story = await begin(text(graph)).run(failing)

        assert story.states == expected(graph, failing), (seed, graph, failing)
        assert story.end == end_of(story.states), (seed, graph, failing)
