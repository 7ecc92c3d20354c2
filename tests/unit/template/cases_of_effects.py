"""Cases of keys without an effect, of keys of other systems, and of numbers out of bounds."""

from __future__ import annotations

from tests.unit.template.cases import BATCH, BRANCHES, CHAIN, GOOD, Case, changed
from tests.unit.template.support import HEAD, step, steps, top


def builtin(inputs: str, name: str = "log") -> str:
    """A template with a built-in step that has these inputs."""
    return steps(f"- {{name: a, handler: tasker.{name}, inputs: {inputs}}}")


PUBLISHES = step("publishes_events: [{name: order.paid}]")
EFFECTS = (
    Case("T027", top("«schedule»: '0 4 * * *'"), "schedules", top("schedules: [{name: early, cron: '0 4 * * *'}]")),
    Case("T027", top("«on»: {push: {}}"), "schedules: [{name: nightly", GOOD),
    Case("T022", top("schedules: «a»"), "expected a list", top("schedules: []")),
    Case(
        "T021",
        top("schedules: [«{name: a}»]"),
        "`cron` or `every` is missing",
        top("schedules: [{name: a, every: 5m}]"),
    ),
    Case(
        "T062",
        top("schedules: [{name: a, cron: 0 2 * * *, «every»: 5m}]"),
        "`cron` and `every` exclude each other",
        top("schedules: [{name: a, cron: 0 2 * * *}]"),
    ),
    Case(
        "T110",
        top("schedules: [{name: a, cron: 0 «25» * * *}]"),
        "not valid as the hour",
        top("schedules: [{name: a, cron: 0 23 * * *}]"),
    ),
    Case(
        "T110",
        top("schedules: [{name: a, cron: '0 0 «31» 2 *'}]"),
        "no month has such a day",
        top("schedules: [{name: a, cron: 0 0 29 2 *}]"),
    ),
    Case(
        "T110",
        top("schedules: [{name: a, cron: «0 2 *»}]"),
        "got 3 fields",
        top("schedules: [{name: a, cron: 0 0 2 * * *}]"),
    ),
    Case(
        "T111",
        top("schedules: [{name: a, every: 5m, timezone: «Europe/Berln»}]"),
        "did you mean `Europe/Berlin`?",
        top("schedules: [{name: a, every: 5m, timezone: Europe/Berlin}]"),
    ),
    Case(
        "T112",
        top("schedules: [{name: a, every: 5m, skip_dates: [«2026-02-30»]}]"),
        "a date such as 2026-12-24",
        top("schedules: [{name: a, every: 5m, skip_dates: [2026-02-28]}]"),
    ),
    Case(
        "T112",
        top("schedules: [{name: a, every: 5m, start: «2026-02-28»}]"),
        "a time with a zone",
        top("schedules: [{name: a, every: 5m, start: 2026-02-28T00:00:00Z}]"),
    ),
    Case(
        "T113",
        top("schedules: [{name: a, every: 5m}, {name: «a», every: 6m}]"),
        "a second schedule `a`",
        top("schedules: [{name: a, every: 5m}, {name: b, every: 6m}]"),
    ),
    Case(
        "T114",
        top("schedules: [{name: a, every: 5m, start: 2026-02-28T00:00:00Z, end: «2026-02-27T00:00:00Z»}]"),
        "it never fires",
        top("schedules: [{name: a, every: 5m, end: 2026-02-27T00:00:00Z}]"),
    ),
    Case(
        "T060", top("schedules: [{name: a, every: «500ms»}]"), "at least 1s", top("schedules: [{name: a, every: 1s}]")
    ),
    Case(
        "T060",
        top("schedules: [{name: a, every: 5m, jitter: «5m»}]"),
        "not shorter than `every`",
        top("schedules: [{name: a, every: 5m, jitter: 4m}]"),
    ),
    Case(
        "T115",
        top("input_schema: {required: [day]}\nschedules: [{name: a, every: 5m, «context»: {kind: b}}]"),
        "does not fit the `input_schema`",
        top("input_schema: {required: [day]}\nschedules: [{name: a, every: 5m, context_from: {day: fire_date}}]"),
    ),
    Case(
        "T062",
        top("schedules: [{name: a, every: 5m, context: {day: b}, «context_from»: {day: fire_date}}]"),
        "`day` is in `context` as well",
        top("schedules: [{name: a, every: 5m, context: {day: b}}]"),
    ),
    Case("T027", top("schedules: [{name: a, every: 5m, «tz»: UTC}]"), "write `timezone", top("schedules: []")),
    Case("T027", step("«needs»: [b]"), "write `dependencies: [STEP]`", step("dependencies: []")),
    Case("T027", step("«if»: success()"), "write `when:", step("type: standard")),
    Case("T027", step("«timeout-minutes»: 5"), "write `timeout_seconds`", step("timeout_seconds: 300")),
    Case("T027", step("«withItems»: [1, 2]"), "write `for_each:", GOOD),
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
    Case(
        "T063",
        steps(
            "- {name: a, handler: h, delay: 40m}\n- {name: b, handler: h, dependencies: [a], delay: «20m»}",
            HEAD + "deadline: 1h\n",
        ),
        "`b` never begins: its delays take 1h, the `deadline` is 1h",
        steps(
            "- {name: a, handler: h, delay: 40m}\n- {name: b, handler: h, dependencies: [a], delay: 19m}",
            HEAD + "deadline: 1h\n",
        ),
    ),
    Case("T064", step("retry: {never_on: [«42»]}"), "an HTTP status from 100 to 599", step("retry: {never_on: [429]}")),
    Case("T064", step("retry: {only_on: [«sqlstate:4»]}"), "a SQLSTATE", step("retry: {only_on: [sqlstate:40]}")),
    Case("T064", step("retry: {only_on: [«{}»]}"), "an exception class", step("retry: {only_on: [a.b.Error]}")),
    Case(
        "T062",
        step("retry: {never_on: [404, «5xx»], only_on: [5xx]}"),
        "in `never_on` and in `only_on`",
        step("retry: {never_on: [503], only_on: [5xx]}"),
    ),
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
        "T116",
        step("concurrency: {limit: 1, key: «customer»}"),
        "input.customer.id",
        step("concurrency: {limit: 1, key: input.customer}"),
    ),
    Case("T116", step("concurrency: {limit: 1, key: «7»}"), "expected a path", step("concurrency: {limit: 1}")),
    Case(
        "T116",
        steps("- {name: a, handler: h}\n- {name: b, handler: h, concurrency: {limit: 1, key: «steps.a.at»}}"),
        "not a step above `b`",
        steps(
            "- {name: a, handler: h}\n"
            "- {name: b, handler: h, dependencies: [a], concurrency: {limit: 1, key: steps.a.at}}"
        ),
    ),
    Case(
        "T117",
        steps(
            "- {name: a, handler: h, concurrency: {limit: 1, scope: template}}\n"
            "- {name: b, handler: h, concurrency: {limit: «2», scope: template}}"
        ),
        "write 1 here",
        steps("- {name: a, handler: h, concurrency: {limit: 1}}\n- {name: b, handler: h, concurrency: {limit: 2}}"),
    ),
    Case("T021", top("concurrency: «{key: input.tenant}»"), "`limit`", top("concurrency: {limit: 1}")),
    Case(
        "T116",
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
    Case("T125", step("limits: [mail, sms, «mail»]"), "keep one of them", step("limits: [mail, sms]")),
    Case("T026", step("limits: [«my mail»]"), "table of the configuration", step("limits: [my-mail]")),
    Case("T021", step("limits: [«{key: input.customer}»]"), "`name`", step("limits: [{name: m, key: input.c}]")),
    Case(
        "T116",
        steps("- {name: a, handler: h}\n- {name: b, handler: h, limits: [x, {name: m, key: «steps.a.at»}]}"),
        "not a step above `b`",
        steps(
            "- {name: a, handler: h}\n"
            "- {name: b, handler: h, dependencies: [a], limits: [x, {name: m, key: steps.a.at}]}"
        ),
    ),
    Case("T023", top("unique: «always»"), "while_running", top("unique: while_running")),
    Case("T020", top("unique: {«keys»: input.customer}"), "did you mean `key`?", top("unique: {key: input.customer}")),
    Case("T116", top("unique: {key: «customer.id»}"), "input.customer.id", top("unique: {key: input.customer.id}")),
    Case(
        "T116",
        top("unique: {key: «steps.a.customer»}"),
        "write input.NAME",
        top("unique: {key: input.customer}"),
    ),
    Case(
        "T130",
        top(
            "input_schema: {properties: {customer: {properties: {id: {}}, additionalProperties: false}}}\n"
            "unique: {key: «input.customer.ids»}"
        ),
        "did you mean `id`?",
        top("input_schema: {properties: {customer: {}}}\nunique: {key: input.customers.id}"),
    ),
    Case(
        "T130",
        top("input_schema: {properties: {a: {}}, additionalProperties: false}\ndebounce: {key: «input.b», wait: 5s}"),
        "properties of the input: `a`",
        top("debounce: {key: input.b, wait: 5s}"),
    ),
    Case("T131", top("debounce: {wait: «0s»}"), "more than 0s", top("debounce: {wait: 1s}")),
    Case(
        "T131",
        top("debounce: {wait: 1m, max_wait: «30s»}"),
        "`max_wait` is shorter than `wait`, 60s",
        top("debounce: {wait: 1m, max_wait: 1m}"),
    ),
    Case(
        "T131",
        top("input_schema: {properties: {a: {}}, additionalProperties: false}\ndebounce: {wait: 5s, keep: «collect»}"),
        "no property `collected`",
        top(
            "input_schema: {properties: {collected: {}}, additionalProperties: false}\n"
            "debounce: {wait: 5s, keep: collect}"
        ),
    ),
    Case(
        "T131",
        top("input_schema: «{required: [collected]}»\ndebounce: {wait: 5s, keep: collect}"),
        "`collected` is required, and no submission has it",
        top("input_schema: {required: [a]}\ndebounce: {wait: 5s, keep: collect}"),
    ),
    Case(
        "T132",
        top("debounce: {wait: 5s}\nunique: «while_running»"),
        "exclude each other",
        top("debounce: {wait: 5s}"),
    ),
    Case(
        "T132",
        top("debounce: {wait: 5s}\nidentity_strategy: «strict»"),
        "leave it out",
        top("debounce: {wait: 5s}\nidentity_strategy: always_unique"),
    ),
    Case("T116", top("tenant: {from: «tenant»}"), "input.customer.id", top("tenant: input.tenant")),
    Case("T120", top("priority: «hihg»"), "did you mean `high`?", top("priority: high")),
    Case("T120", top("priority: «1.5»"), "a whole number from", top("priority: -3")),
    Case("T118", step("rate_limit: {rate: «100»}"), "did you mean 100/s?", step("rate_limit: {rate: 100/s}")),
    Case("T118", step("rate_limit: {rate: «fast»}"), "30/m", step("rate_limit: {rate: 0.5/s, burst: 3}")),
    Case("T118", step("rate_limit: {rate: «0/s»}"), "expected a rate", step("rate_limit: {rate: 1/d}")),
    Case(
        "T116",
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
    Case("T100", builtin("{message: a, «levl»: info}"), "did you mean `level`", builtin("{message: a, level: info}")),
    Case("T101", builtin("{level: info}").replace("inputs", "«inputs»"), "add `message`", builtin("{message: a}")),
    Case("T102", builtin("{message: «1»}"), "expected text", builtin("{message: '1'}")),
    Case(
        "T103",
        builtin("{value: 1, schema: {title: «'${task.id}'»}}", "validate"),
        "write the value itself",
        builtin("{value: 1, schema: {title: '$'}}", "validate"),
    ),
    Case(
        "T170",
        builtin("{message: a}").replace("tasker.log", "«tasker.lgo»"),
        "did you mean `tasker.log`?",
        builtin("{message: a}"),
    ),
    Case(
        "T104",
        builtin("{message: a}").replace("tasker.log", "{callable: tasker.log, method: «other»}"),
        "remove `method`",
        builtin("{message: a}"),
    ),
    Case(
        "T105",
        builtin("{a: 1}, result_schema: «{required: [b], properties: {b: {}}}»", "transform"),
        "the inputs lack `b`",
        builtin("{b: 1}, result_schema: {required: [b], properties: {b: {}}}", "transform"),
    ),
)
