"""Random templates against networkx, and random garbage against the promise never to raise."""

from __future__ import annotations

import dataclasses

import networkx as nx
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tasker.template.compile import compile_text
from tasker.template.drawing import FORMATS, tree_rows
from tasker.template.normalized import normalized_yaml
from tasker.template.plan import Plan
from tasker.template.step_types import StepType
from tests.unit.template.support import DATA, HEAD

TEXTS = [file.read_text() for file in sorted((DATA / "good").glob("*.yaml"))]
FRAGMENTS = [
    "\t",
    "{{ x }}",
    "&a ",
    "*a",
    "- ",
    ": ",
    "[",
    "]",
    "{",
    "}",
    "'",
    '"',
    "\n",
    "  ",
    "!!int ",
    "|",
    "?",
    "<<: ",
    "~",
    "0x",
    "\\",
    "---\n",
    "\x00",
    "é",
    "name",
    "steps:",
    "null",
]

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@st.composite
def random_dags(draw: st.DrawFn) -> nx.DiGraph:
    """A graph whose nodes are in the order of the file, which need not be a topological one."""
    count = draw(st.integers(1, 12))
    ranks = draw(st.permutations(range(count)))
    graph = nx.DiGraph()
    graph.add_nodes_from(range(count))
    pairs = [(a, b) for a in range(count) for b in range(count) if ranks[a] < ranks[b]]
    graph.add_edges_from(draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else [])
    return graph


@st.composite
def typed_dags(draw: st.DrawFn) -> tuple[nx.DiGraph, dict[int, str]]:
    """The same, with decisions and convergences where the rules allow them."""
    graph = draw(random_dags())
    types: dict[int, str] = {}
    for node in nx.topological_sort(graph):
        decides = any(types[a] == "decision" for a in nx.ancestors(graph, node))
        branch = any(types[p] == "decision" for p in graph.predecessors(node))
        dynamic = any(any(types[a] == "decision" for a in nx.ancestors(graph, p)) for p in graph.predecessors(node))
        if decides and not branch:
            types[node] = "deferred" if dynamic else "standard"
        else:
            types[node] = draw(st.sampled_from(["standard", "decision"]))
    return graph, types


def template_of(graph: nx.DiGraph, types: dict[int, str] | None = None) -> str:
    kinds = types or {}
    document = {
        "name": "flow",
        "namespace": "tests",
        "version": "1.0.0",
        "steps": [
            {
                "name": f"s{node}",
                "type": kinds.get(node, "standard"),
                "handler": "h",
                "dependencies": [f"s{parent}" for parent in graph.predecessors(node)],
            }
            for node in graph.nodes
        ],
    }
    return yaml.safe_dump(document)


def only_plan(text: str) -> Plan:
    result = compile_text(text)
    assert result.ok, result.errors
    (plan,) = result.plans
    return plan


def names(nodes: set[int]) -> tuple[str, ...]:
    return tuple(sorted(f"s{node}" for node in nodes))


@given(random_dags())
def test_order_levels_ancestors_and_descendants_agree_with_networkx(graph: nx.DiGraph) -> None:
    plan = only_plan(template_of(graph))
    expected = [f"s{node}" for node in nx.lexicographical_topological_sort(graph)]
    assert [s.name for s in plan.steps] == expected
    assert [s.ordinal for s in plan.steps] == list(range(len(expected)))
    levels = {node: level for level, nodes in enumerate(nx.topological_generations(graph)) for node in nodes}
    for node in graph.nodes:
        step = plan.by_name[f"s{node}"]
        assert step.level == levels[node]
        assert plan.above.of(step.name) == names(nx.ancestors(graph, node))
        assert plan.below.of(step.name) == names(nx.descendants(graph, node))
        assert step.depends_on == tuple(f"s{parent}" for parent in graph.predecessors(node))
        assert step.static


@given(typed_dags())
def test_steps_below_a_decision_are_dynamic_and_no_others(case: tuple[nx.DiGraph, dict[int, str]]) -> None:
    graph, types = case
    plan = only_plan(template_of(graph, types))
    deciding = {node for node, type_ in types.items() if type_ == "decision"}
    for node in graph.nodes:
        assert plan.by_name[f"s{node}"].static == (not nx.ancestors(graph, node) & deciding)


@given(random_dags(), st.data())
def test_an_added_back_edge_is_reported_as_a_real_cycle(graph: nx.DiGraph, data: st.DataObject) -> None:
    pairs = [(b, a) for a in graph.nodes for b in nx.descendants(graph, a)]
    loops = [(node, node) for node in graph.nodes]
    graph.add_edge(*data.draw(st.sampled_from(pairs + loops)))
    result = compile_text(template_of(graph))
    assert not result.plans
    assert {d.code for d in result.diagnostics} == {"T041"}
    for diagnostic in result.diagnostics:
        if " -> " in diagnostic.message:
            path = [int(name[1:]) for name in diagnostic.message.partition(": ")[2].split(" -> ")]
            assert path[0] == path[-1]
            assert nx.is_path(graph, path)


@given(typed_dags())
def test_a_plan_survives_json_and_a_normalized_template(case: tuple[nx.DiGraph, dict[int, str]]) -> None:
    plan = only_plan(template_of(*case))
    assert Plan.from_json(plan.to_json()) == plan
    assert only_plan(normalized_yaml(plan)) == plan


@given(st.dictionaries(st.text(), json_values, max_size=4))
def test_any_values_survive_json_and_a_normalized_template(metadata: dict[str, object]) -> None:
    plan = dataclasses.replace(only_plan(HEAD + "steps: [{name: a, handler: h}]"), metadata=metadata)
    result = compile_text(normalized_yaml(plan))
    storable = not any(c == "\0" for c in str_of(metadata))
    assert result.ok == storable
    if storable:
        assert result.plans[0] == plan
        assert Plan.from_json(plan.to_json()).hash == plan.hash


def str_of(value: object) -> str:
    if isinstance(value, dict):
        return "".join(str_of(part) for pair in value.items() for part in pair)
    return "".join(map(str_of, value)) if isinstance(value, list) else str(value)


@given(typed_dags())
def test_every_drawing_shows_every_step(case: tuple[nx.DiGraph, dict[int, str]]) -> None:
    plan = only_plan(template_of(*case))
    assert sorted(row.step.name for row in tree_rows(plan)) == sorted(plan.by_name)
    for draw in FORMATS.values():
        assert all(name in draw(plan) for name in plan.by_name)


def check_garbage(text: str) -> None:
    result = compile_text(text)
    lines = len(text.splitlines()) + 2
    assert result.plans or result.diagnostics
    assert all(1 <= d.line <= lines and d.column >= 1 for d in result.diagnostics)
    for plan in result.plans:
        assert Plan.from_json(plan.to_json()) == plan


@given(st.text() | st.lists(st.sampled_from(FRAGMENTS)).map("".join))
@settings(max_examples=300)
def test_garbage_yields_diagnostics_and_never_an_exception(text: str) -> None:
    check_garbage(text)


@given(st.sampled_from(TEXTS), st.data())
@settings(max_examples=300)
def test_a_damaged_template_yields_diagnostics_and_never_an_exception(text: str, data: st.DataObject) -> None:
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        length = data.draw(st.integers(0, 8))
        text = text[:start] + data.draw(st.sampled_from(FRAGMENTS)) + text[start + length :]
    check_garbage(text)


@given(json_values)
def test_any_document_yields_diagnostics_and_never_an_exception(value: object) -> None:
    check_garbage(
        yaml.safe_dump(
            {
                "name": value,
                "namespace": value,
                "steps": [value, {"name": value, "retry": value, "dependencies": value}],
                "environments": value,
                "input_schema": value,
            }
        )
    )


@given(st.sampled_from(TEXTS))
def test_the_hash_is_stable_and_changes_with_the_content(text: str) -> None:
    first, second = compile_text(text).plans[0], compile_text("# a comment\n" + text).plans[0]
    changed = compile_text(text.replace("\nsteps:\n", "\nsteps:\n  - {name: added, handler: h}\n", 1))
    assert first.hash == second.hash
    assert changed.plans[0].hash != first.hash


def test_types_of_the_plan_are_the_five_kinds() -> None:
    assert {s.type for text in TEXTS for p in compile_text(text).plans for s in p.steps} == set(StepType)
