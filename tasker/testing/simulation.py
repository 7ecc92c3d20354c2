"""Simulated runs for tests of workflows: `simulate`, mocks, and assertions with readable differences."""

from __future__ import annotations

from typing import Any

from tasker.simulation import mocks as mock
from tasker.simulation.mocks import Mock
from tasker.simulation.outcome import SimulatedRun
from tasker.simulation.scenarios import differences
from tasker.simulation.simulate import simulate
from tasker.simulation.steps import SimulatedStep

__all__ = [
    "Mock",
    "SimulatedRun",
    "SimulatedStep",
    "assert_results",
    "assert_route",
    "assert_step",
    "mock",
    "simulate",
]


def assert_route(run: SimulatedRun, *steps: str) -> None:
    """Assert that exactly these steps ran, in this order. The message says why a missing one did not run."""
    if run.route != [*steps]:
        absent = [name for name in steps if name not in run.route]
        whys = "".join(f"\n  {name} did not run: {run.why(name)}" for name in absent)
        raise AssertionError(f"expected {' > '.join(steps)}\n     was {' > '.join(run.route)}{whys}")


def assert_step(run: SimulatedRun, name: str, **expected: Any) -> None:
    """Assert fields of a step: `state` (or `status`), `attempts`, `error_type`, `error_code`, `result`, `inputs`.

    An object may have further keys than expected.
    """
    step, lines = run.step(name), []
    for key, wanted in expected.items():
        field = {"status": "state"}.get(key, key)
        if field == "inputs":
            found = run.inputs(name)
        elif field in ("state", "attempts", "error_type", "error_code", "result", "started_ms", "ended_ms"):
            found = getattr(step, field)
        else:
            raise TypeError(f"assert_step knows no field {key!r}")
        lines += differences(wanted, str(found) if field == "state" else found, f"{name}.{key}")
    if lines:
        raise AssertionError("\n".join(lines))


def assert_results(run: SimulatedRun, **expected: Any) -> None:
    """Assert results by step; an object may have further keys than expected."""
    lines = [line for name, wanted in expected.items() for line in differences(wanted, run.step(name).result, name)]
    if lines:
        raise AssertionError("\n".join(lines))
