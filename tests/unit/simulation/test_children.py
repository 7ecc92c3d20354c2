"""Steps that start child tasks in a simulated run: mocked by their result, or simulated from their template."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tasker.errors import UsageError
from tasker.template.child_keys import OF_CHILDREN
from tasker.testing.simulation import assert_results, mock, simulate

FILE = """
name: batch
namespace: media
version: 1.0.0
steps:
  - {name: plan, handler: plan}
  - name: videos
    type: task
    dependencies: [plan]
    template: encode
    for_each: {in: steps.plan.urls, as: url}
    inputs: {url: "${url}"}
    output: steps.pack.size
    max_parallel: 2
    tolerated_failures: 1
  - {name: report, handler: report, dependencies: [videos], inputs: {sizes: "${steps.videos.results}"}}
---
name: encode
namespace: media
version: 1.0.0
input_schema: {type: object, required: [url], properties: {url: {type: string}}}
steps:
  - {name: pack, handler: pack}
"""
MOCKS = {"plan": {"urls": ["a", "b", "c"]}, "report": {}}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "workflow.yaml"
    path.write_text(FILE)
    return path


def test_children_are_simulated_from_a_template_beside_it(file: Path) -> None:
    run = simulate(file, {}, {**MOCKS, "encode/pack": mock.result({"size": 7}, takes="10s")})

    assert run.status == "complete"
    assert_results(run, videos={"total": 3, "succeeded": 3, "failed": [], "results": [7, 7, 7]})
    assert run.steps["videos"].ended_ms == 20_000, "two at the same time"


def test_too_many_failures_of_children_fail_the_step(file: Path) -> None:
    run = simulate(file, {}, {**MOCKS, "encode/pack": mock.fails("broken", retryable=False)})

    failure = run.steps["videos"].failures[-1].failure
    assert (run.status, failure.error_type) == ("error", "too_many_children_failed")
    assert "2 of 3 child tasks failed, 1 tolerated" in failure.message


def test_a_step_with_children_can_be_mocked_by_its_result(file: Path) -> None:
    result = {"total": 1, "succeeded": 1, "failed": [], "results": [5]}

    run = simulate(file, {}, {**MOCKS, "videos": result})

    assert_results(run, videos=result)


def test_children_of_an_unknown_template_need_a_mock(file: Path) -> None:
    file.write_text(FILE.split("---")[0])

    with pytest.raises(UsageError, match="which is not in the same file or folder"):
        simulate(file, {}, MOCKS)


def keys_of_simulation() -> set[str]:
    source = (Path(__file__).parents[3] / "tasker" / "simulation" / "children.py").read_text()
    read: dict[str, Any] = {"tolerated_failures": "tolerated("}
    return {key for key in OF_CHILDREN if read.get(key, f'"{key}"') in source}


def test_every_key_of_child_tasks_is_known_to_the_simulation() -> None:
    assert set(OF_CHILDREN) - keys_of_simulation() == set()
