"""Graphs of tasks and templates as boxes and lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tasker.server.web.presenters.graph import Box, Drawing, of_task, of_template
from tasker.server.web.presenters.graph_layout import GAP_X, laid_out
from tasker.template import compile_text
from tasker.views.tasks import StepReport, TaskReport
from tests.support.reports import report_of

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
CHOICE = """
name: choice
namespace: shop
version: 1.0.0
steps:
  - {name: look, handler: h}
  - {name: choose, type: decision, handler: h, dependencies: [look]}
  - {name: left, handler: h, dependencies: [choose]}
  - {name: right, handler: h, dependencies: [choose]}
  - {name: join, type: deferred_convergence, handler: h, dependencies: [left, right]}
"""
BATCHES = """
name: batches
namespace: shop
version: 1.0.0
steps:
  - {name: cut, type: batchable, handler: h, batch_config: {batch_size: 1}}
  - {name: work, type: batch_worker, handler: h, dependencies: [cut]}
  - {name: sum, type: deferred_convergence, handler: h, dependencies: [work]}
"""


def step(name: str, kind: str = "standard", state: str = "complete", above: Sequence[str] = ()) -> StepReport:
    return StepReport(name, name, kind, "h", state, 1, 3, list(above), None, [], 5)


def report(*steps: StepReport, status: str = "steps_in_process") -> TaskReport:
    return report_of(steps, status=status, created_at=NOW)


def boxes(drawing: Drawing) -> dict[str, Box]:
    return {box.key: box for box, _ in drawing.boxes}


def test_a_branch_that_was_decided_against_stays_in_the_picture() -> None:
    (plan,) = compile_text(CHOICE).plans
    look, choose = step("look"), step("choose", "decision", above=["look"])
    before = boxes(of_task(report(look, replace(choose, state="pending")), plan))
    assert {name for name, box in before.items() if box.missing == "to_come"} == {"left", "right", "join"}

    left = step("left", state="in_progress", above=["choose"])
    join = step("join", "deferred_convergence", "pending", ["left"])
    found = of_task(report(look, choose, left, join), plan)

    assert boxes(found)["right"].words == "not taken"
    assert boxes(found)["left"].look == "runs"
    assert {(line.start, line.end): real for line, real in found.lines} == {
        ("look", "choose"): True,
        ("choose", "left"): True,
        ("left", "join"): True,
        ("choose", "right"): False,
    }


def test_instances_of_a_batch_worker_are_one_box_with_its_progress() -> None:
    (plan,) = compile_text(BATCHES).plans
    workers = [step(f"work_{n:03}", "batch_worker", "complete", ["cut"]) for n in range(1, 8)]
    workers[2] = replace(workers[2], state="in_progress")
    join = step("sum", "deferred_convergence", "pending", [worker.name for worker in workers])

    found = of_task(report(step("cut", "batchable"), *workers, join), plan)

    box = boxes(found)["work_001"]
    assert (box.title, box.done, box.count, box.state) == ("work_001..007", 6, 7, "in_progress")
    assert box.words.endswith("running 6/7")
    assert {(line.start, line.end) for line, _ in found.lines} == {("cut", "work_001"), ("work_001", "sum")}
    assert set(boxes(found)) == {"cut", "work_001", "sum"}


def test_the_graph_of_a_template_has_all_its_steps() -> None:
    (plan,) = compile_text(BATCHES).plans
    found = of_template(plan)
    assert [box.words for box, _ in found.boxes] == ["batchable", "batch worker", "deferred convergence"]
    assert found.width > 3 * 176


def drawn_edges(count: int) -> st.SearchStrategy[tuple[int, list[tuple[int, int]]]]:
    end = st.integers(0, count - 1)
    return st.tuples(st.just(count), st.lists(st.tuples(end, end), max_size=80))


@given(st.integers(1, 40).flatmap(drawn_edges))
def test_boxes_never_overlap_and_lines_go_to_the_right(drawn: tuple[int, list[tuple[int, int]]]) -> None:
    count, pairs = drawn
    keys = [str(number) for number in range(count)]
    edges = [(str(min(pair)), str(max(pair))) for pair in pairs if pair[0] != pair[1]]

    found = laid_out(keys, edges, 100, 40)

    assert set(found.places) == set(keys)
    columns: dict[int, list[int]] = {}
    for place in found.places.values():
        columns.setdefault(place.x, []).append(place.y)
        assert 0 <= place.x <= found.width - 100
        assert 0 <= place.y <= found.height - 40
    for tops in columns.values():
        assert all(below - above >= 40 for above, below in pairwise(sorted(tops)))
    for start, end in edges:
        assert found.places[end].x - found.places[start].x >= 100 + GAP_X
    assert len(found.lines) == len(set(edges))


def test_lines_of_a_simple_fork_do_not_cross() -> None:
    edges = [("a", "b"), ("a", "c"), ("b", "e"), ("c", "d")]
    places = laid_out(["a", "b", "c", "d", "e"], edges, 100, 40).places
    assert (places["b"].y < places["c"].y) == (places["e"].y < places["d"].y)
