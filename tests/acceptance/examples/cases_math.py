"""Linear, diamond, tree and mixed graphs of arithmetic."""

from __future__ import annotations

from tests.acceptance.examples.workflow_case import Case, Failed

LINEAR = ("mathematical_add", "mathematical_multiply", "mathematical_subtract", "mathematical_divide")
DIAMOND = ("step_1", "step_2", "step_3", "step_4")
LEAVES = ("tree_leaf_d", "tree_leaf_e", "tree_leaf_f", "tree_leaf_g")
TREE = ("tree_root", "tree_branch_left", "tree_branch_right", *LEAVES, "tree_final_convergence")
MIXED = (
    "dag_init",
    "dag_process_left",
    "dag_process_right",
    "dag_validate",
    "dag_transform",
    "dag_analyze",
    "dag_finalize",
)

MATH_CASES = [
    Case(
        "linear",
        "linear_math",
        LINEAR,
        results=dict(zip(LINEAR, [{"value": 15}, {"value": 30}, {"value": 20}, {"value": 5.0}], strict=True)),
        attempts=dict.fromkeys(LINEAR, 1),
    ),
    Case("linear_other_input", "linear_math", LINEAR, {"value": 3, "divisor": 8}, {LINEAR[3]: {"value": 0.75}}),
    Case(
        "linear_division_by_zero",
        "linear_math",
        LINEAR,
        {"divisor": 0},
        attempts={LINEAR[3]: 1},
        failed=Failed(LINEAR[3], "validation_error", "division_by_zero"),
    ),
    Case(
        "diamond",
        "diamond",
        DIAMOND,
        results=dict(zip(DIAMOND, [{"value": 4}, {"value": 16}, {"value": 16}, {"value": 256}], strict=True)),
    ),
    Case(
        "tree",
        "tree",
        TREE,
        results={
            "tree_root": {"value": 4},
            "tree_branch_left": {"value": 16},
            "tree_branch_right": {"value": 16},
            **{leaf: {"value": 256} for leaf in LEAVES},
            "tree_final_convergence": {"value": 4_294_967_296, "leaves": 4},
        },
    ),
    Case(
        "mixed_dag",
        "mixed_dag",
        MIXED,
        results={
            "dag_init": {"numbers": [1, 3, 5, 7], "count": 4},
            "dag_process_left": {"total": 16},
            "dag_process_right": {"total_of_squares": 84},
            "dag_validate": {"consistent": True},
            "dag_transform": {"mean": 4.0},
            "dag_analyze": {"root_mean_square": 4.582576},
            "dag_finalize": {"count": 4, "consistent": True, "mean": 4.0, "root_mean_square": 4.582576},
        },
    ),
]
