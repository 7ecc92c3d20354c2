"""Cases of steps that start child tasks."""

from __future__ import annotations

from tests.unit.template.cases import Case
from tests.unit.template.support import steps


def child(text: str) -> str:
    return steps(f"- {{name: a, handler: h}}\n- {{name: b, type: task, dependencies: [a], {text}}}\n")


ONE = child("template: x")
LIST = child("template: x, for_each: {in: input.list}, tolerated_failures: 5%, max_parallel: 3")
CHILDREN = (
    Case("T180", steps("- {name: a, type: «task»}"), "what it starts", steps("- {name: a, type: task, template: x}")),
    Case("T181", steps("- {name: a, handler: h, «collect»: none}"), "type: task", ONE),
    Case("T182", LIST.replace("5%", "«5 %»"), "a share such as 5%", LIST),
    Case("T182", LIST.replace("5%", "«101%»"), "a share such as 5%", LIST),
    Case("T183", child("template: x, «max_parallel»: 3"), "one child", LIST),
    Case("T183", child("template: x, for_each: {in: input.list, «on_error»: collect}"), "tolerated_failures", LIST),
    Case("T027", steps("- {name: a, handler: h, «template»: x}"), "add `type: task`", ONE),
    Case("T184", child("template: «flow»"), "without end", ONE),
    Case("T141", child("template: x, «handler»: h"), "no worker runs", ONE),
    Case("T141", child("template: x, «retry»: {max_attempts: 2}"), "no worker runs", ONE),
    Case("T091", child("template: x, output: «b».c"), "unknown name", child("template: x, output: steps.c.d")),
    Case("T090", child("template: x, output: «)»"), "value", child("template: x, output: task.id")),
    Case("T092", child("template: x, for_each: {in: '«1»'}"), "list", LIST),
    Case("T091", child("template: x, inputs: {n: '${«index»}'}"), "unknown name", child("template: x, inputs: {n: 1}")),
)
