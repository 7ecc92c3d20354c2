"""Cases of steps that wait without a worker."""

from __future__ import annotations

from tests.unit.template.cases import Case
from tests.unit.template.support import steps


def wait(text: str) -> str:
    return steps(f"- {{name: a, handler: h}}\n- {{name: b, type: wait, dependencies: [a], {text}}}\n")


def event(text: str) -> str:
    return steps(f"- {{name: a, handler: h}}\n- {{name: b, type: wait_for_event, dependencies: [a], {text}}}\n")


def approval(text: str) -> str:
    return steps(f"- {{name: a, handler: h}}\n- {{name: b, type: approval, dependencies: [a], {text}}}\n")


THREE_DAYS = wait("for: 3d")
MONDAY = wait("until: {next: monday, at: 09:00, timezone: Europe/Berlin}")
EVENT = event("event: x, timeout: 2h")
SEVERAL = event("events: [{event: x}, {event: y, key: input.id}], timeout: never")
ALL = event("event: x, take: all, timeout: 2h")
APPROVAL = approval("timeout: 2d")
BOTH = approval("quorum: 2, from: {subjects: [ann, bob]}, timeout: 2d")
FORM = approval("form: {properties: {note: {type: string}}}, timeout: 2d")
REMINDED = approval("reminders: 1d, escalate: {after: 1d, to: {subjects: [ann]}}, timeout: 2d")
ESCALATED = "escalate: {after: «2d», to: {subjects: [ann]}}, timeout: 2d"
WAITS = (
    Case("T140", steps("- {name: a, type: «wait»}"), "how long", steps("- {name: a, type: wait, for: 3d}")),
    Case("T140", wait("for: 3d, until: «input.at»"), "exclude", wait("until: input.at")),
    Case("T141", steps("- {name: a, handler: h, «for»: 3d}"), "type: wait", THREE_DAYS),
    Case("T141", wait("for: 3d, «handler»: h"), "no worker runs", THREE_DAYS),
    Case("T065", wait("for: 3d, «for_each»: input.list"), "standard step", THREE_DAYS),
    Case("T142", wait("until: {next: day, at: «9»}"), "09:00", MONDAY),
    Case("T023", wait("until: {next: «moonday», at: 09:00}"), "monday", MONDAY),
    Case("T111", wait("until: {next: day, at: 09:00, timezone: «Berlin»}"), "Europe/Berlin", MONDAY),
    Case("T021", wait("until: «{next: day}»"), "at", MONDAY),
    Case("T060", wait("for: «3»"), "3s", THREE_DAYS),
    Case("T099", EVENT.replace(", timeout: 2h", "").replace("wait_for_event", "«wait_for_event»"), "never", EVENT),
    Case("T143", steps("- {name: a, type: «wait_for_event», timeout: 2h}"), "which event", EVENT),
    Case("T143", event("event: «x», events: [{event: y}], timeout: 2h"), "exclude", SEVERAL),
    Case("T143", event("events: [«{key: input.x}»], timeout: 2h"), "event: NAME", SEVERAL),
    Case("T144", event("event: x, take: all, timeout: «never»"), "a duration", ALL),
    Case("T144", event("event: x, take: all, count: «2», timeout: 2h"), "exclude", ALL),
    Case("T141", event("event: x, timeout: 2h, «for»: 3d"), "a time", EVENT),
    Case("T141", wait("for: 3d, «event»: x"), "wait_for_event", THREE_DAYS),
    Case(
        "T116",
        event("event: x, key: «steps.b.id», timeout: 2h"),
        "above",
        event("event: x, key: steps.a.id, timeout: 2h"),
    ),
    Case("T060", event("event: x, timeout: «2»"), "2s", EVENT),
    Case("T144", event("event: x, timeout: 2h, on_timeout: fail, «on_failure»: continue"), "keep one", EVENT),
    Case("T151", event("event: x, timeout: 2h, on_timeout: {run: «c»}"), "no step `c`", EVENT),
    Case("T023", event("event: x, timeout: 2h, on_timeout: «stop»"), "expected", EVENT),
    Case("T061", wait("until: «steps.b.at»"), "above", wait("until: steps.a.at")),
    Case("T099", approval("quorum: 1").replace("type: approval", "type: «approval»"), "never", APPROVAL),
    Case("T141", steps("- {name: a, handler: h, «quorum»: 3}"), "type: approval", APPROVAL),
    Case("T141", approval("«event»: x, timeout: 2d"), "an event", APPROVAL),
    Case("T141", approval("«retry»: {max_attempts: 2}, timeout: 2d"), "no worker runs", APPROVAL),
    Case("T021", approval("from: «{}», timeout: 2d"), "subjects", APPROVAL),
    Case("T192", approval("from: {subjects: [«'a ${input.b}'»]}, timeout: 2d"), "input.manager", APPROVAL),
    Case("T193", approval("from: {permissions: [«finance»]}, timeout: 2d"), "approvals:", APPROVAL),
    Case("T194", approval("form: «{type: object}», timeout: 2d"), "properties", FORM),
    Case("T194", approval("form: «{properties: {a: {$ref: '#/b'}}, b: {type: string}}», timeout: 2d"), "$ref", FORM),
    Case("T195", approval("quorum: «2», from: {subjects: [ann]}, timeout: 2d"), "1 may decide", BOTH),
    Case("T196", approval("reminders: «2d», timeout: 2d"), "after the `timeout`", REMINDED),
    Case("T196", approval("reminders: «0s», timeout: 2d"), "at least 1s", REMINDED),
    Case("T196", approval(ESCALATED), "after the `timeout`", REMINDED),
    Case("T116", approval("from: {subjects: [«'${steps.b.by}'»]}, timeout: 2d"), "above", APPROVAL),
)
