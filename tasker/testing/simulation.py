"""Simulated runs for tests of workflows: `simulate`, mocks, and assertions with readable differences."""

from __future__ import annotations

from tasker.simulation import mocks as mock
from tasker.simulation.mocks import Mock
from tasker.simulation.outcome import SimulatedRun
from tasker.simulation.simulate import simulate
from tasker.simulation.steps import SimulatedStep
from tasker.testing.assertions import assert_no_effects, assert_published, assert_results, assert_route, assert_step

__all__ = [
    "Mock",
    "SimulatedRun",
    "SimulatedStep",
    "assert_no_effects",
    "assert_published",
    "assert_results",
    "assert_route",
    "assert_step",
    "mock",
    "simulate",
]
