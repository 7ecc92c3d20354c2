"""For every rule a template that breaks it, with the place marked, and one that comes near and does not."""

from __future__ import annotations

from dataclasses import dataclass

from tests.unit.template.support import HEAD, step, steps, top


@dataclass(frozen=True)
class Case:
    """`bad` has one mark «...» where the diagnostic must point; `says` is part of its message or hint."""

    code: str
    bad: str
    says: str
    good: str


GOOD = step("")
BATCH = """
- {name: cut, handler: h, type: batchable}
- {name: work, handler: h, type: batch_worker, dependencies: [cut]}
- {name: sum, handler: h, type: deferred, dependencies: [work]}
"""
CHAIN = """
- {name: a, handler: h, dependencies: []}
- {name: b, handler: h, dependencies: [a]}
- {name: c, handler: h, dependencies: [b]}
"""
BRANCHES = """
- {name: decide, handler: h, type: decision}
- {name: left, handler: h, dependencies: [decide]}
- {name: right, handler: h, dependencies: [decide]}
- {name: end, handler: h, type: deferred, dependencies: [decide, left, right]}
"""


def changed(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1, (old, text)
    return text.replace(old, new)


READING = (
    Case("T001", HEAD + "steps: [a, b\n«»", "expected ',' or ']'", GOOD),
    Case("T001", top("description: a«:» b"), "`: `", top('description: "a: b"')),
    Case("T001", "name: 'x\n«»", "never closed", GOOD),
    Case("T001", "name: a«\x07»b\n", "U+0007", GOOD),
    Case("T001", 'name: "\\U«F»FFFFFFF"\n', "not valid YAML", GOOD),
    Case("T002", HEAD + "steps:\n«\t»- name: a\n", "spaces", GOOD),
    Case("T003", HEAD + "«version»: 2.0.0\nsteps: [{name: a, handler: h}]\n", "it is first in line 3", GOOD),
    Case("T004", step("description: «{{ x }}»"), "quotes", step('description: "{{ x }}"')),
    Case("T004", step("description: «{{» x }}/path"), "quotes", step('description: "{{ x }}/path"')),
    Case("T004", HEAD + "steps:\n  - «{{ x }}»\n", "quotes", GOOD),
    Case("T005", top("metadata: {«200»: ok}"), '"200"', top('metadata: {"200": ok}')),
    Case("T005", top("metadata: {«true»: ok}"), '"true"', top("metadata: {on: ok, yes: ok, no: ok}")),
    Case("T006", top("metadata: «&loop {again: *loop}»"), "contains itself", top("metadata: {a: &x [1], b: *x}")),
    Case(
        "T007",
        HEAD + "metadata: {a: " + "[" * 98 + "«»[" + "]" * 99 + "}\nsteps: [{name: a, handler: h}]\n",
        "100 levels",
        top("metadata: {a: " + "[" * 90 + "]" * 90 + "}"),
    ),
    Case("T008", step("description: «!secret x»"), "!secret", step("description: !!str 5")),
    Case("T009", top("metadata: {a: «.nan»}"), "JSON", top('metadata: {a: ".nan"}')),
    Case("T009", top("metadata: {a: «1e999»}"), "too large", top("metadata: {a: 1e99}")),
    Case("T009", top('metadata: {a: «"x\\0"»}'), "NUL", GOOD),
    Case("T009", top('metadata: {a: «"\\ud800"»}'), "surrogate", top('metadata: {a: "\\U0001F600"}')),
    Case("T009", top("metadata: {a: «!!int x»}"), "!!int", top('metadata: {a: !!int "5"}')),
    Case("T010", "«»# nothing but a comment\n", "no template", GOOD),
    Case("T011", "«»- a\n- b\n", "mapping", GOOD),
)

KEYS = (
    Case("T020", top("«descripton»: x"), "did you mean `description`?", top("description: x")),
    Case("T020", step("«dependancies»: []"), "did you mean `dependencies`?", step("dependencies: []")),
    Case("T020", step("«max_attempts»: 3"), "belongs under `retry`", step("retry: {max_attempts: 3}")),
    Case("T020", step("retry: {«tries»: 3}"), "known keys: `retryable`", step("retry: {}")),
    Case("T020", top("environments: {x: {steps: [{name: a, «type»: standard}]}}"), "an override", GOOD),
    Case("T021", HEAD + "steps:\n  - «»name: a\n", "`handler` is missing", GOOD),
    Case("T021", "«»name: a\nversion: 1\nsteps: [{name: a, handler: h}]\n", "`namespace_name` is missing", GOOD),
    Case("T021", changed(step(""), "handler: h", "handler: «{method: run}»"), "`callable` is missing", GOOD),
    Case("T022", step('timeout_seconds: «"30"»'), "remove the quotes", step("timeout_seconds: 30")),
    Case("T022", step("retry: {retryable: «yes»}"), "write `true`", step("retry: {retryable: true}")),
    Case("T022", step("dependencies: «b»"), "write [b]", step("dependencies: []")),
    Case("T022", step("description: «5»"), 'put it in quotes: "5"', step('description: "5"')),
    Case("T022", HEAD + "steps: «yes»\n", "expected a list, found the text 'yes'", GOOD),
    Case("T022", step("retry: {max_attempts: «2.5»}"), "a whole number", step("retry: {max_attempts: 2}")),
    Case("T022", step("retry: {jitter: «fulll»}"), "did you mean `full`?", step("retry: {jitter: full}")),
    Case("T022", step("retry: {jitter: «[1]»}"), "a share from 0 to 1", step("retry: {jitter: none}")),
    Case("T022", HEAD + "steps: [{name: a, handler: «[h]»}]\n", "expected a mapping", GOOD),
    Case("T022", HEAD + "steps: [«a»]\n", "expected a mapping", GOOD),
    Case("T023", step("type: «decisio»"), "did you mean `decision`?", step("type: standard")),
    Case("T023", step("type: «3»"), "found the number 3", step("step_type: standard")),
    Case("T023", top("identity_strategy: «unique»"), "`always_unique`", top("identity_strategy: always_unique")),
    Case("T038", step("execution: {memory_mb: «64»}"), "process", step("execution: {mode: process, memory_mb: 64}")),
    Case("T023", step("execution: {mode: «fork»}"), "`process`", step("execution: {mode: process}")),
    Case("T023", step("on_worker_lost: «ignore»"), "`fail`", step("on_worker_lost: fail")),
    Case("T024", step("timeout_seconds: «0»"), "above 0", step("timeout_seconds: 0.5")),
    Case("T024", step("retry: {max_attempts: «-1»}"), "at least 0", step("retry: {max_attempts: 1}")),
    Case("T024", step("retry: {jitter: «1.5»}"), "at most 1", step("retry: {jitter: 1}")),
    Case(
        "T024",
        step("timeout_seconds: «1.0e13»"),
        "above 0 and of at most 31,622,400",
        step("timeout_seconds: 31622400"),
    ),
    Case("T024", step("retry: {max_attempts: «1000001»}"), "at most 1,000,000", step("retry: {max_attempts: 1000000}")),
    Case("T024", step("retry: {backoff_base_ms: «99999999999»}"), "at most 31,622,400,000", GOOD),
    Case("T024", step("retry: {max_backoff_ms: «99999999999»}"), "at most 31,622,400,000", GOOD),
    Case("T024", top("lifecycle: {max_duration_minutes: «1e13»}"), "at most 5,270,400", GOOD),
    Case(
        "T024",
        top("environments: {x: {steps: [{name: a, timeout_seconds: «1e13»}]}}"),
        "at most 31,622,400",
        top("environments: {x: {steps: [{name: a, timeout_seconds: 30}]}}"),
    ),
    Case("T024", HEAD + "steps: «[]»\n", "at least one", GOOD),
    Case("T024", changed(step(""), "handler: h", 'handler: «""»'), "empty", GOOD),
    Case(
        "T025",
        step("type: standard\n«step_type»: decision"),
        "two spellings",
        step("type: decision_point\nstep_type: decision\n"),
    ),
    Case("T025", top("«namespace»: other"), "keep `namespace_name` (line 2)", top("namespace: tests")),
    Case(
        "T025",
        step("retry: {max_attempts: 2, «limit»: 3}"),
        "two spellings",
        step("retry: {max_attempts: 2, limit: 2}"),
    ),
    Case(
        "T025", step("dependencies: []\n«depends_on»: [b]"), "two spellings", step("dependencies: []\ndepends_on: []")
    ),
    Case(
        "T025",
        step("retry: {max_attempts: 2}\nlifecycle: {«max_retries»: 3}"),
        "keep `retry.max_attempts`",
        step("retry: {max_attempts: 3}\nlifecycle: {max_retries: 3}"),
    ),
    Case(
        "T025",
        step("retry: {backoff_base_ms: 5, «initial_delay»: 1}"),
        "1000 ms",
        step("retry: {backoff_base_ms: 1000, initial_delay: 1}"),
    ),
    Case(
        "T026",
        "name: «my flow»\nnamespace_name: x\nversion: 1\nsteps: [{name: a, handler: h}]\n",
        "without spaces",
        GOOD,
    ),
    Case("T026", "name: a\nnamespace: x\nversion: «1.0+»\nsteps: [{name: a, handler: h}]\n", "build metadata", GOOD),
    Case("T026", "name: a\nnamespace_name: «Shop»\nversion: 1\nsteps: [{name: a, handler: h}]\n", "lower-case", GOOD),
    Case(
        "T026",
        "name: a\nnamespace_name: «" + "x" * 34 + "»\nversion: 1\nsteps: [{name: a, handler: h}]\n",
        "at most 33",
        "name: a\nnamespace_name: " + "x" * 33 + "\nversion: 1\nsteps: [{name: a, handler: h}]\n",
    ),
    Case(
        "T026",
        "name: a\nnamespace_name: «orchestration_x»\nversion: 1\nsteps: [{name: a, handler: h}]\n",
        "names that begin with `orchestration`",
        "name: a\nnamespace_name: my_orchestration\nversion: 1\nsteps: [{name: a, handler: h}]\n",
    ),
    Case(
        "T026",
        changed(step(""), "handler: h", "handler: {callable: h, method: «_secret»}"),
        "cannot be called",
        changed(step(""), "handler: h", "handler: {callable: h, method: refund}"),
    ),
    Case("T026", steps("- {name: «ALL», handler: h}"), "every step", steps("- {name: All, handler: h}")),
    Case("T027", step("«composition»: {steps: []}"), "handler in Python", GOOD),
    Case(
        "T028", step("result_schema: {type: «strin»}"), "did you mean `string`?", step("result_schema: {type: string}")
    ),
    Case(
        "T028",
        top("input_schema: {properties: {a: {minimum: «low»}}}"),
        "a number",
        top("input_schema: {properties: {a: {minimum: 1}}}"),
    ),
    Case(
        "T028",
        top("input_schema: {properties: {a: {$ref: «'#/$defs/b'»}}}"),
        "refers to nothing",
        top("input_schema: {$defs: {b: {}}, properties: {a: {$ref: '#/$defs/b'}}}"),
    ),
    Case("T028", top("input_schema: {properties: {a: {$ref: «'http://127.0.0.1/x'»}}}"), "refers to nothing", GOOD),
    Case(
        "T028",
        top("input_schema: {properties: {a: {pattern: «'['»}}}"),
        "unclosed character class",
        top("input_schema: {properties: {a: {pattern: '[a]'}}}"),
    ),
    Case(
        "T028",
        top(r"input_schema: {properties: {a: {pattern: «'^(?!x)a$'»}}}"),
        "look-around, including look-ahead and look-behind, is not supported",
        top(r"input_schema: {properties: {a: {pattern: '^\p{L}\u00e9\/$'}}}"),
    ),
    Case("T028", top("input_schema: {patternProperties: {x: {}}, unevaluatedProperties: «false»}"), "additional", GOOD),
    Case(
        "T028",
        top("input_schema: {properties: {a: {$schema: «'https://json-schema.org/draft/2020-12/schema'»}}}"),
        "only the top",
        top("input_schema: {properties: {$schema: {type: string}}}"),
    ),
    Case(
        "T028",
        top("input_schema: {$schema: «'urn:x'»}"),
        "dialect",
        top("input_schema: {$schema: 'http://json-schema.org/draft-07/schema#'}"),
    ),
    Case("T028", top("domain_events: [{name: e, schema: {type: «nil»}}]"), "expected one of", GOOD),
    Case("T022", top("input_schema: «5»"), "a JSON Schema", GOOD),
    Case(
        "T033",
        step("system_dependency: «stripe»"),
        "declare it",
        top("system_dependencies: {secondary: [stripe]}").replace(
            "handler: h", "handler: h, system_dependency: stripe"
        ),
    ),
    Case(
        "T036",
        steps(
            "- {name: a, handler: h, circuit_breaker: {name: x, timeout_seconds: 20}}\n"
            "- {name: b, handler: h, circuit_breaker: {name: «x»}}"
        ),
        "in the step `a` (line 5)",
        steps(
            "- {name: a, handler: h, circuit_breaker: {name: x, timeout_seconds: 30}}\n"
            "- {name: b, handler: h, circuit_breaker: {name: x}}"
        ),
    ),
    Case("T034", step("retry: {profile: «databse»}"), "did you mean `database`?", step("retry: {profile: database}")),
)

GRAPH = (
    Case(
        "T030",
        steps("- {name: a, handler: h}\n- {name: «a», handler: h}"),
        "line 5",
        steps("- {name: a, handler: h}\n- {name: b, handler: h}"),
    ),
    Case("T031", GOOD + "---\n«»" + GOOD, "`tests/flow:1.0.0` twice", GOOD + "---\n" + GOOD.replace("1.0.0", "1.0.1")),
    Case(
        "T032",
        top("environments: {x: {steps: [{name: «b»}]}}"),
        "`b` is not a step",
        top("environments: {x: {steps: [{name: a}]}}"),
    ),
    Case(
        "T032",
        top("environments: {x: {steps: [{name: a}, {name: «a»}]}}"),
        "a second override",
        top("environments: {x: {steps: [{name: ALL}, {name: a}]}}"),
    ),
    Case(
        "T040",
        steps("- {name: start, handler: h}\n- {name: b, handler: h, dependencies: [«strat»]}"),
        "did you mean `start`?",
        steps("- {name: start, handler: h}\n- {name: b, handler: h, dependencies: [start]}"),
    ),
    Case(
        "T041",
        steps(changed(CHAIN, "[]", "[«c»]")),
        "a -> b -> c -> a",
        steps(CHAIN),
    ),
    Case("T041", step("dependencies: [«a»]"), "depends on itself", GOOD),
    Case("T042", steps("- {name: a, handler: h}\n- {name: b, handler: h, depends_on: [a, «a»]}"), "listed twice", GOOD),
    Case(
        "T050",
        steps("- {name: work, handler: h, type: batch_worker, dependencies: «[]»}"),
        "exactly one batchable",
        steps(BATCH),
    ),
    Case(
        "T050",
        steps(
            BATCH
            + "- {name: cut2, handler: h, type: batchable}\n"
            + "- {name: w2, handler: h, type: batch_worker, dependencies: «[cut2, cut]»}"
        ),
        "`cut2`, `cut`",
        steps(BATCH),
    ),
    Case("T051", steps("- {name: cut, handler: h, type: «batchable»}"), "no batch_worker", steps(BATCH)),
    Case(
        "T052",
        steps(BATCH + "- {name: z, handler: h, dependencies: [«work»]}"),
        "deferred_convergence",
        steps(BATCH + "- {name: z, handler: h, dependencies: [sum]}"),
    ),
    Case(
        "T053",
        steps("- {name: a, handler: h}\n- {name: b, handler: h, type: deferred, dependencies: «[a]»}"),
        "`type: standard`",
        steps(BATCH),
    ),
    Case(
        "T053",
        steps(changed(BATCH, "deferred, dependencies: [work]", "deferred, dependencies: «[cut]»")),
        "list the steps that `cut` creates",
        steps(BATCH),
    ),
    Case(
        "T054",
        steps(BRANCHES + "- {name: z, handler: h, dependencies: [«left»]}"),
        "add `decide` to its dependencies",
        steps(BRANCHES + "- {name: z, handler: h, dependencies: [decide, left]}"),
    ),
    Case(
        "T054",
        steps(BRANCHES + "- {name: z, handler: h, type: decision, dependencies: [«left»]}"),
        "unreachable",
        steps(BRANCHES + "- {name: z, handler: h, dependencies: [end]}"),
    ),
    Case(
        "T055",
        steps(BATCH + "- {name: «work_001», handler: h}"),
        "instance of the batch_worker `work`",
        steps(BATCH + "- {name: work_01, handler: h}"),
    ),
    Case(
        "T056",
        step("«batch_config»: {batch_size: 5}"),
        "no batches",
        steps(changed(BATCH, "batchable}", "batchable, batch_config: {batch_size: 5}}")),
    ),
    Case(
        "T057",
        steps(changed(BATCH, "batchable}", "batchable, batch_config: {worker_template: «wrk»}}")),
        "did you mean `work`?",
        steps(changed(BATCH, "batchable}", "batchable, batch_config: {worker_template: work}}")),
    ),
)

WARNINGS = (
    Case("T070", steps(changed(BRANCHES, "[decide, left, right]", "[«left», right]")), "add `decide`", steps(BRANCHES)),
    Case(
        "T071",
        steps(
            changed(BATCH, "name: cut", "name: «cut»")
            + "- {name: w2, handler: h, type: batch_worker, dependencies: [cut]}"
        ),
        "`work`, `w2`",
        steps(BATCH),
    ),
    Case("T072", steps(changed(BRANCHES, "[decide, left, right]", "«[decide, left]»")), "add `right`", steps(BRANCHES)),
    Case("T073", step("type: «decision»"), "nothing to decide", steps(BRANCHES)),
    Case(
        "T074",
        steps(changed(changed(BRANCHES, "type: deferred, ", ""), "name: end", "name: «end»")),
        "deferred_convergence",
        steps(BRANCHES),
    ),
    Case("T080", step("retry: {max_attempts: «0»}"), "runs once", step("retry: {max_attempts: 1}")),
    Case(
        "T081",
        step("retry: {retryable: false, max_attempts: «3»}"),
        "write `max_attempts: 1`",
        step("retry: {retryable: false}"),
    ),
    Case(
        "T082",
        step("retry: {«backoff_base_ms»: 60000}"),
        "above the limit of 30000 ms",
        step("retry: {backoff_base_ms: 60000, max_backoff_ms: 60000}"),
    ),
    Case("T083", step("retry: {«limit»: 3}"), "write `max_attempts`", step("retry: {max_attempts: 3}")),
    Case(
        "T083",
        step("lifecycle: {«max_retries»: 3}"),
        "retry: {max_attempts",
        step("lifecycle: {max_steps_in_process_minutes: 3}"),
    ),
    Case("T083", top("«task_handler»: {callable: x}"), "no effect", top("loaded_from: x")),
    Case(
        "T084",
        changed(step(""), "handler: h", 'handler: {callable: h, initialization: {urls: ["x", «"http://${HOST}/"»]}}'),
        '`${HOST}` is not replaced: the handler gets this text as it is let the handler read os.environ["HOST"]',
        changed(step(""), "handler: h", 'handler: {callable: h, initialization: {price: "$5 {HOST} ${}"}}'),
    ),
    Case(
        "T084",
        top('environments: {production: {steps: [{name: ALL, handler: {initialization: {key: «"${KEY:-none}"»}}}]}}'),
        "os.environ",
        top("environments: {production: {steps: [{name: ALL, handler: {initialization: {key: none}}}]}}"),
    ),
)

CASES = READING + KEYS + GRAPH + WARNINGS
