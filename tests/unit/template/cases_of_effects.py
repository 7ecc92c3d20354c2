"""Cases of keys without an effect, of keys of other systems, and of numbers out of bounds."""

from __future__ import annotations

from tests.unit.template.cases import BATCH, GOOD, Case, changed
from tests.unit.template.support import step, steps, top

PUBLISHES = step("publishes_events: [{name: order.paid}]")
EFFECTS = (
    Case("T027", top("«schedule»: '0 4 * * *'"), "tasker task submit", top("description: at four")),
    Case("T027", top("«on»: {push: {}}"), "no task starts by itself", GOOD),
    Case("T027", step("«needs»: [b]"), "write `dependencies: [STEP]`", step("dependencies: []")),
    Case("T027", step("«if»: success()"), "`type: decision`", step("type: standard")),
    Case("T027", step("«timeout-minutes»: 5"), "write `timeout_seconds`", step("timeout_seconds: 300")),
    Case("T027", step("«withItems»: [1, 2]"), "`type: batchable`", GOOD),
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
)
