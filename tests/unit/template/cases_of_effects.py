"""Cases of keys without an effect, of keys of other systems, and of numbers out of bounds."""

from __future__ import annotations

from tests.unit.template.cases import BATCH, BRANCHES, CHAIN, GOOD, Case, changed
from tests.unit.template.support import step, steps, top

PUBLISHES = step("publishes_events: [{name: order.paid}]")
EFFECTS = (
    Case("T027", top("«schedule»: '0 4 * * *'"), "tasker task submit", top("description: at four")),
    Case("T027", top("«on»: {push: {}}"), "no task starts by itself", GOOD),
    Case("T027", step("«needs»: [b]"), "write `dependencies: [STEP]`", step("dependencies: []")),
    Case("T027", step("«if»: success()"), "`type: decision`", step("type: standard")),
    Case("T027", step("«timeout-minutes»: 5"), "write `timeout_seconds`", step("timeout_seconds: 300")),
    Case("T027", step("«withItems»: [1, 2]"), "`type: batchable`", GOOD),
    Case("T027", step("«sleep»: 5m"), "write `delay: 5m`", step("delay: 5m")),
    Case("T060", step("delay: «300»"), "did you mean 300s?", step("delay: 300s")),
    Case("T060", step("delay: «soon»"), "a duration such as 90s, 5m, 36h, 3d or 1h30m", step("delay: 1h30m")),
    Case("T060", step("delay: «400d»"), "from 0s to 366d", step("delay: 366d")),
    Case("T061", step("not_before: «tomorrow»"), "input.customer.id", step("not_before: input.starts_at")),
    Case(
        "T061",
        step("not_before: «2026-01-31T18:00:00»"),
        "add the zone: 2026-01-31T18:00:00Z",
        step("not_before: 2026-01-31T18:00:00Z"),
    ),
    Case("T061", step("not_before: «2026-13-01T18:00:00Z»"), "a time with a zone", step("not_before: input.a[0]")),
    Case("T061", step("not_before: «5»"), "a time with a zone", step('not_before: input["5"]')),
    Case("T062", step("delay: 5m\nnot_before: «input.at»"), "exclude each other", step("delay: 5m")),
    Case(
        "T061",
        steps("- {name: a, handler: h}\n- {name: b, handler: h, not_before: «steps.a.at»}"),
        "not a step above `b`",
        steps("- {name: a, handler: h}\n- {name: b, handler: h, dependencies: [a], not_before: steps.a.at}"),
    ),
    Case(
        "T061",
        steps(BATCH).replace("dependencies: [work]}", "dependencies: [work], not_before: «steps.work.at»}"),
        "an instance for each batch",
        steps(BATCH).replace("dependencies: [work]}", "dependencies: [work], not_before: steps.cut.at}"),
    ),
    Case("T027", step("retry: {«attempts»: 3}"), "counts the first run", step("retry: {max_attempts: 3}")),
    Case("T027", changed(step(""), "name: a", "«id»: a"), "write `name`", GOOD),
    Case(
        "T039",
        step("publishes_events: [{name: a.b}, {name: «a.b», condition: always}]"),
        "the first is in line",
        step("publishes_events: [{name: a.b}, {name: a.b, condition: failure}]"),
    ),
    Case(
        "T039",
        top("domain_events: [{name: a.b}, {name: «a.b»}]"),
        "remove one of them",
        GOOD,
    ),
    Case(
        "T076",
        changed(PUBLISHES, "steps:", "domain_events: [{name: «order.piad»}]\nsteps:"),
        "did you mean `order.paid`",
        changed(PUBLISHES, "steps:", "domain_events: [{name: stock.low}]\nsteps:"),
    ),
    Case("T085", top("«system_dependencies»: {primary: shop}"), "circuit_breaker", GOOD),
    Case("T085", step("«system_dependency»: default"), "circuit_breaker", GOOD),
    Case(
        "T085",
        steps(BATCH).replace("dependencies: [cut]}", "dependencies: [cut], batch_config: {«batch_size»: 5}}"),
        "initialization: {batch_size: ...}",
        steps(BATCH),
    ),
    Case(
        "T085",
        steps(BATCH).replace("dependencies: [cut]}", "dependencies: [cut], batch_config: {«parallelism»: 5}}"),
        "free slots",
        steps(BATCH),
    ),
    Case(
        "T085",
        steps(BATCH).replace("dependencies: [cut]}", "dependencies: [cut], batch_config: {«worker_template»: work}}"),
        "outcome names",
        steps(BATCH),
    ),
    Case("T090", step('inputs: {x: "${input.a «and» true}"}'), "write `&&`", step('inputs: {x: "${input.a && true}"}')),
    Case("T091", step('inputs: {x: "${«imput».a}"}'), "did you mean `input`", step('inputs: {x: "${input.a}"}')),
    Case("T092", step("inputs: {x: \"${1 «+» 'a'}\"}"), "string(...)", step("inputs: {x: \"${string(1) + 'a'}\"}")),
    Case(
        "T093",
        step('inputs: {x: "${input.«a»}"}').replace("steps:", "input_schema: {properties: {a: {}}}\nsteps:"),
        "has(input.a)",
        GOOD,
    ),
    Case(
        "T094",
        steps(CHAIN).replace("{name: a, handler: h,", '{name: a, handler: h, inputs: {x: "${steps.«b».x}"},'),
        "add `b` to the dependencies",
        steps(CHAIN),
    ),
    Case(
        "T095",
        steps(BRANCHES).replace("type: deferred", 'type: deferred, inputs: {x: "${steps.«left».x}"}'),
        "has(steps.left)",
        GOOD,
    ),
)
