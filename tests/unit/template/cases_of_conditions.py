"""Cases of `when`, `rules`, `for_each` and overridden inputs."""

from __future__ import annotations

from itertools import pairwise

from tests.unit.template.cases import GOOD, Case
from tests.unit.template.support import HEAD, steps

SCHEMA = """\
input_schema:
  type: object
  required: [amount, tier, lines]
  properties:
    amount: {type: number}
    tier: {enum: [standard, gold]}
    coupon: {type: string}
    lines: {type: array, items: {type: object, required: [sku], properties: {sku: {type: string}}}}
"""
QUOTE = """\
- name: quote
  handler: h
  result_schema: {type: object, required: [total], properties: {total: {type: integer}, note: {type: string}}}
"""


def flow(text: str) -> str:
    """A template with an `input_schema`, the step `quote` and further steps."""
    return steps(QUOTE + text.strip("\n"), head=HEAD + SCHEMA)


def when(text: str) -> str:
    return flow(f"- {{name: pay, handler: h, dependencies: [quote], when: {text}}}")


def rules(text: str) -> str:
    """A decision with these rules and its two branches."""
    return flow(
        f"- name: route\n  dependencies: [quote]\n  rules: {text}\n"
        "- {name: left, handler: h, dependencies: [route]}\n"
        "- {name: right, handler: h, dependencies: [route]}"
    )


def each(text: str, more: str = "") -> str:
    return flow(f"- {{name: work, handler: h, dependencies: [quote], for_each: {text}{more}}}")


RULES = rules('[{when: "steps.quote.total > 9", then: [left]}, {else: [right]}]')
WHEN = when('"steps.quote.total > 9"')
EACH = each('{in: input.lines, as: line}, inputs: {sku: "${line.sku}"}')
ENVIRONMENT = "environments: {test: {steps: [{name: NAME, INPUTS: {x: 2}}]}}\n"


def chain(length: int) -> str:
    """Conditions one after the other; the key of the 51st is marked."""
    names = ["quote", *(f"s{number}" for number in range(length))]
    lines = [
        f'- {{name: {name}, handler: h, dependencies: [{above}], when: "input.amount > 1.0"}}'
        for above, name in pairwise(names)
    ]
    return flow("\n".join(lines[:50] + [line.replace("when:", f"{MARKED}:") for line in lines[50:51]] + lines[51:]))


MARKED = "«when»"
CONDITIONS = (
    Case("T090", when('"steps.quote.total >«»"'), "expected", WHEN),
    Case("T090", when('"«${»steps.quote.total > 9}"'), "write the expression without", WHEN),
    Case("T091", when('"steps.«qoute».total > 9"'), "did you mean `quote`", WHEN),
    Case("T091", when('"steps.quote.«totl» > 9"'), "did you mean `total`", WHEN),
    Case("T022", when("«null»"), "found nothing", WHEN),
    Case("T091", when('"«attempt» < 2"'), "unknown name `attempt`", WHEN),
    Case("T092", when('"steps.quote.«total»"'), "a condition is a bool, got int", WHEN),
    Case("T092", when("\"input.tier «==» 'gould'\""), "did you mean `gold`", when("\"input.tier == 'gold'\"")),
    Case("T093", when("\"steps.quote.«note» == 'a'\""), "has(steps.quote.note)", WHEN),
    Case("T094", when('"steps.«pay».total > 9"'), "cannot read its own result", WHEN),
    Case("T022", when("«true»"), 'put it in quotes: "true"', when('"true"')),
    Case(
        "T094",
        flow('- {name: a, handler: h}\n- {name: b, handler: h, when: "steps.«a».x"}'),
        "add `a` to the dependencies of `b`",
        flow('- {name: a, handler: h}\n- {name: b, handler: h, dependencies: [a], when: "steps.a.x"}'),
    ),
    Case(
        "T040",
        flow('- {name: b, handler: h, dependencies: [«qoute»], when: "true"}'),
        "did you mean `quote`",
        WHEN,
    ),
    Case(
        "T041",
        flow('- {name: a, handler: h, dependencies: [«b»], when: "true"}\n- {name: b, handler: h, dependencies: [a]}'),
        "a -> b -> a",
        WHEN,
    ),
    Case(
        "T065",
        flow(
            '- {name: a, handler: h, dependencies: [quote], when: "true"}\n'
            '- {name: end, type: deferred, handler: h, dependencies: [a], «when»: "true"}'
        ),
        "put the condition on a step below it",
        WHEN,
    ),
    Case(
        "T065",
        flow(
            "- {name: cut, type: batchable, handler: h}\n"
            '- {name: work, type: batch_worker, handler: h, dependencies: [cut], «when»: "true"}'
        ),
        "put the condition on the batchable step",
        flow(
            '- {name: cut, type: batchable, handler: h, when: "true"}\n'
            "- {name: work, type: batch_worker, handler: h, dependencies: [cut]}"
        ),
    ),
    Case(
        "T069",
        flow('- {name: a, handler: h, when: "true"}\n- {name: «a.when», handler: h}'),
        "made for `a`",
        flow('- {name: a, handler: h, when: "true"}\n- {name: b.when, handler: h}'),
    ),
    Case(
        "T069",
        flow('- {name: a, handler: h, when: "true"}\n- {name: b, handler: h, dependencies: [«a.when»]}'),
        "depend on `a`",
        flow('- {name: a, handler: h, when: "true"}\n- {name: b, handler: h, dependencies: [a]}'),
    ),
    Case("T068", chain(52), "decide more in one step", chain(50)),
    Case("T021", flow("- «{name: a}»"), "`handler` is missing", RULES),
    Case("T024", rules("«[]»"), "the list is empty", RULES),
    Case(
        "T065",
        RULES.replace("  - name: route", "  - name: route\n    «handler»: h"),
        "has no effect together with `rules`",
        RULES,
    ),
    Case(
        "T065",
        RULES.replace("  - name: route", "  - name: route\n    type: «standard»"),
        "leave `type` out",
        RULES.replace("  - name: route", "  - name: route\n    type: decision"),
    ),
    Case("T065", rules("[{«then»: [left]}, {else: [right]}]"), "found `then`", RULES),
    Case("T065", rules('[{when: "true", «else»: [left, right]}]'), "found `else`, `when`", RULES),
    Case(
        "T067",
        rules('[{when: "input.amount > 1.0", then: [«lefft»]}, {else: [left, right]}]'),
        "did you mean `left`",
        RULES,
    ),
    Case(
        "T067",
        rules('[{when: "input.amount > 1.0", then: [left, right]}, {else: [«quote»]}]'),
        "add `route` to the dependencies of `quote`",
        RULES,
    ),
    Case(
        "T066",
        rules('[{when: "input.amount > 1.0", then: [«"${input.tier}"»]}, {else: [left, right]}]'),
        "not an expression",
        RULES,
    ),
    Case("T066", flow('- {name: a, handler: «"${input.tier}"»}'), "not an expression", GOOD),
    Case(
        "T079",
        rules('[{when: "true", then: [left]}, «{else: [right]}»]'),
        "rule 1 always does",
        RULES,
    ),
    Case(
        "T079",
        rules('[{when: "input.amount > 1.0", then: [left]}]').replace(
            "right, handler: h, dependencies: [route]", "right, handler: h, dependencies: «[route]»"
        ),
        "no rule takes the branch `right`",
        RULES,
    ),
    Case(
        "T091",
        rules('[{when: "input.amount > 1.0", then: [left], because: "${steps.«qoute»}"}, {else: [right]}]'),
        "did you mean `quote`",
        RULES,
    ),
    Case(
        "T092",
        rules('[{when: "input.amount > 1.0", then: [left], because: "for ${steps.«quote»}"}, {else: [right]}]'),
        "inside a text",
        RULES,
    ),
    Case(
        "T054",
        RULES.replace("right, handler: h, dependencies: [route]", "right, handler: h, dependencies: [route, «left»]"),
        "which may not exist",
        RULES + "  - {name: after, handler: h, dependencies: [left]}\n",
    ),
    Case("T021", each("«{as: a}»"), "`in` is missing", EACH),
    Case("T092", each("input.«amount»"), "expects a list", EACH),
    Case("T091", each("input.«linse»"), "did you mean `lines`", EACH),
    Case("T091", each('"[«attempt»]"'), "unknown name `attempt`", EACH),
    Case(
        "T091",
        each("{in: input.lines, as: line}", ', inputs: {x: "${line.«skuu»}"}'),
        "did you mean `sku`",
        EACH,
    ),
    Case("T091", each("input.lines", ', inputs: {x: "${«line».sku}"}'), "unknown name `line`", EACH),
    Case("T026", each("{in: input.lines, as: «task»}"), "choose another name", EACH),
    Case("T024", each("{in: input.lines, batch_size: «0»}"), "at least 1", EACH),
    Case("T023", each("{in: input.lines, on_error: «ignore»}"), "`fail`, `collect`", EACH),
    Case(
        "T065",
        flow("- {name: a, type: decision, handler: h, «for_each»: input.lines}"),
        "repeats a standard step",
        EACH,
    ),
    Case(
        "T065",
        each("input.lines", ", «batch_config»: {cursor_field: a}"),
        "batch_size",
        EACH,
    ),
    Case(
        "T052",
        each("input.lines") + "  - {name: after, handler: h, dependencies: [«work»]}\n",
        "make `after` a `type: deferred_convergence`",
        EACH,
    ),
    Case(
        "T052",
        each("input.lines") + '  - {name: after, handler: h, dependencies: [«work»], when: "true"}\n',
        "put a `type: deferred_convergence` between `work` and `after`",
        EACH,
    ),
    Case(
        "T065",
        WHEN + ENVIRONMENT.replace("NAME", "pay").replace("INPUTS", "«inputs»"),
        "has no `inputs` to override",
        EACH + ENVIRONMENT.replace("NAME", "work").replace("INPUTS", "inputs"),
    ),
    Case(
        "T065",
        EACH + ENVIRONMENT.replace("NAME", "ALL").replace("INPUTS", "«inputs»"),
        "name the step",
        EACH,
    ),
    Case(
        "T091",
        EACH + ENVIRONMENT.replace("NAME", "work").replace("INPUTS: {x: 2}", 'inputs: {sku: "${line.«skuu»}"}'),
        "did you mean `sku`",
        EACH,
    ),
    Case("T027", flow('- {name: a, handler: h, «if»: "input.amount > 1.0"}'), "write `when:", WHEN),
    Case("T027", flow("- {name: a, handler: h, «matrix»: [1]}"), "for_each", EACH),
)
