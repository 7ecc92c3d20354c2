"""Tables of the keys of rules and lists."""

from __future__ import annotations

from tasker.template.mapping import Key, Mapping
from tasker.template.names import MAX_COUNT
from tasker.template.value_kinds import Choice, ListOf, Number, Text

EXPRESSION = Text(may_be_empty=True)
COUNT = Number(whole=True, minimum=1, maximum=MAX_COUNT)

RULE = Mapping(
    "a rule",
    (
        Key("when", EXPRESSION, "Expression of type bool; the first rule whose expression is true decides."),
        Key("then", ListOf(Text()), "The steps to create; an empty list creates none."),
        Key("else", ListOf(Text()), "The steps to create when no rule before applies; only in the last rule."),
        Key("because", Text(), "The reason, stored with the result; may contain expressions: `risk ${input.risk}`."),
    ),
)

FOR_EACH = Mapping(
    "`for_each`",
    (
        Key("in", EXPRESSION, "Expression of type list.", required=True),
        Key(
            "as",
            Text(r"[A-Za-z_][A-Za-z0-9_]*", "a name of letters, digits and `_`"),
            "Name of the item in the expressions of `inputs`.",
            default="item",
        ),
        Key("batch_size", COUNT, "Items that one instance of the step processes, one after the other.", default=1),
        Key(
            "on_error",
            Choice(("fail", "collect")),
            "`fail`: the instance fails; `collect`: the failure becomes the result of the item.",
            default="fail",
        ),
    ),
    shorthand="in",
)

CONDITION_KEYS = (
    Key(
        "when",
        EXPRESSION,
        'Expression of type bool; the step is created only if it is true: `when: "steps.quote.amount > 0"`.',
        may_be_empty=False,  # a step whose condition was forgotten must not run in any case
    ),
    Key("rules", ListOf(RULE, at_least_one=True), "Rules of a decision, in place of a handler."),
    Key("for_each", FOR_EACH, "List for whose items the step runs, or the expression of the list."),
)
"""Keys of a step with conditions, rules and lists."""
