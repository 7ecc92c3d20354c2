"""The rule machine of the engine on examples that it has never seen; `make test` plays the same ones each time."""

from __future__ import annotations

from hypothesis import note, settings

from tests.integration.engine.machine.test_machine import NO_SHRINKING, PROFILE, REACHED, drive
from tests.support.world.world import World

FRESH = settings(PROFILE, derandomize=False, database=None, max_examples=150, phases=NO_SHRINKING)


def test_the_engine_does_what_the_model_says_on_fresh_examples(module_database_url: str) -> None:
    world = World(module_database_url, note)
    try:
        counts = drive(world, "FreshMachine", FRESH)
    finally:
        world.close()
    print(counts)
    assert {name for name, number in counts.items() if number} >= REACHED
