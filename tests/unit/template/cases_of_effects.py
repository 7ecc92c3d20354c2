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
    Case("T021", step("concurrency: «{key: input.customer.id}»"), "`limit`", step("concurrency: {limit: 5}")),
    Case("T024", step("concurrency: {limit: «0»}"), "at least 1", step("concurrency: {limit: 1}")),
    Case(
        "T023",
        step("concurrency: {limit: 1, scope: «global»}"),
        "namespace",
        step("concurrency: {limit: 1, scope: namespace}"),
    ),
    Case(
        "T063",
        step("concurrency: {limit: 1, key: «customer»}"),
        "input.customer.id",
        step("concurrency: {limit: 1, key: input.customer}"),
    ),
    Case("T063", step("concurrency: {limit: 1, key: «7»}"), "expected a path", step("concurrency: {limit: 1}")),
    Case(
        "T063",
        steps("- {name: a, handler: h}\n- {name: b, handler: h, concurrency: {limit: 1, key: «steps.a.at»}}"),
        "not a step above `b`",
        steps(
            "- {name: a, handler: h}\n"
            "- {name: b, handler: h, dependencies: [a], concurrency: {limit: 1, key: steps.a.at}}"
        ),
    ),
    Case(
        "T064",
        steps(
            "- {name: a, handler: h, concurrency: {limit: 1, scope: template}}\n"
            "- {name: b, handler: h, concurrency: {limit: «2», scope: template}}"
        ),
        "write 1 here",
        steps("- {name: a, handler: h, concurrency: {limit: 1}}\n- {name: b, handler: h, concurrency: {limit: 2}}"),
    ),
    Case("T021", top("concurrency: «{key: input.tenant}»"), "`limit`", top("concurrency: {limit: 1}")),
    Case(
        "T063",
        top("concurrency: {limit: 1, key: «steps.a.tenant»}"),
        "before its first step",
        top("concurrency: {limit: 1, key: input.tenant, on_limit: cancel_running}"),
    ),
    Case(
        "T023",
        top("concurrency: {limit: 1, on_limit: «skip»}"),
        "cancel_new",
        top("concurrency: {limit: 1, on_limit: cancel_new}"),
    ),
    Case("T065", step("rate_limit: {rate: «100»}"), "did you mean 100/s?", step("rate_limit: {rate: 100/s}")),
    Case("T065", step("rate_limit: {rate: «fast»}"), "30/m", step("rate_limit: {rate: 0.5/s, burst: 3}")),
    Case("T065", step("rate_limit: {rate: «0/s»}"), "expected a rate", step("rate_limit: {rate: 1/d}")),
    Case(
        "T063",
        step("rate_limit: {rate: 1/s, key: «tenant»}"),
        "input.customer.id",
        step("rate_limit: {rate: 1/s, key: input.tenant}"),
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
)
