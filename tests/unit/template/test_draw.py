"""Drawings of plans."""

from __future__ import annotations

from tasker.template.compile import compile_text
from tasker.template.drawing import draw_dot, draw_mermaid, draw_text
from tasker.template.plan import Plan
from tests.unit.template.support import DATA, plan_of, steps


def read(name: str) -> Plan:
    return compile_text((DATA / "good" / f"{name}.yaml").read_text()).plans[0]


def test_the_tree_shows_joins_types_and_dynamic_steps() -> None:
    assert draw_text(read("approval")).splitlines() == [
        "conditional_approval/approval_routing 1.0.0",
        "",
        "validate_request",
        "└─ routing_decision  [decision]  → finalize_approval",
        "   ├┄ auto_approve  → finalize_approval",
        "   ├┄ manager_approval  → finalize_approval",
        "   └┄ finance_review",
        "      └┄ finalize_approval  [deferred_convergence]"
        "  after routing_decision + auto_approve + manager_approval + finance_review",
        "",
        "┄ created while the task runs",
    ]


def test_the_tree_of_a_static_graph_has_no_legend() -> None:
    plan = plan_of(
        steps("- {name: a, handler: h}\n- {name: b, handler: h, dependencies: [a]}\n- {name: c, handler: h}")
    )
    assert draw_text(plan).splitlines()[2:] == ["a", "└─ b", "c"]


def test_a_batch_worker_is_drawn_as_many() -> None:
    plan = read("csv_batch")
    assert "└┄ process_csv_batch x N  [batch_worker]" in draw_text(plan)
    assert 's1[/"process_csv_batch x N"/]:::dynamic' in draw_mermaid(plan)


def test_mermaid_dashes_dynamic_edges_and_steps() -> None:
    lines = draw_mermaid(read("approval")).splitlines()
    assert lines[0] == "flowchart TD"
    assert '    s1{"routing_decision"}' in lines
    assert "    s0 --> s1" in lines
    assert "    s1 -.-> s2" in lines
    assert lines[-1] == "    classDef dynamic stroke-dasharray: 5 5"


def test_dot_is_a_directed_graph_with_dashed_edges() -> None:
    lines = draw_dot(read("csv_batch")).splitlines()
    assert lines[0] == 'digraph "csv_product_inventory_analyzer" {'
    assert '  "analyze_csv" -> "process_csv_batch" [style=dashed];' in lines
    assert lines[-1] == "}"


def test_a_chain_of_thousands_is_drawn_without_recursion() -> None:
    chain = "".join(f"- {{name: s{i}, handler: h, dependencies: [{f's{i - 1}' if i else ''}]}}\n" for i in range(1100))
    assert draw_text(plan_of(steps(chain))).count("└─") == 1099


def test_text_shows_conditions_and_lists() -> None:
    text = """
    - {name: pay, handler: h, when: input.amount > 0}
    - {name: ship, handler: h, dependencies: [pay], for_each: {in: input.lines, as: line}}
    """
    drawn = draw_text(plan_of(steps(text)))
    assert "pay.when  [decision]  if input.amount > 0" in drawn
    assert "ship.each  [batchable]  for each line in input.lines" in drawn
