"""The reference of all metrics and alerts, as a page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tasker_prometheus.table import MILLISECONDS
from tools.monitoring.alert import Alert
from tools.monitoring.alerts import ALERTS
from tools.monitoring.catalogue import METRICS, Told
from tools.monitoring.published import ALERTS_ELSEWHERE, ELSEWHERE, LABELS_LEFT_OUT

HEAD = """# Metrics and alerts

Made by `python -m tools.monitoring` from the tables in the code. [Metrics](../metrics.md) explains how
to scrape them.

A name has the form `tasker_*`, or the one under which it was published first. Counters end in `_total`; histograms
are of durations, in the unit that their name ends in.
A label holds what there is little of, as the tables say: a metric of the plugin has at most 1,000 series, beyond
which the rest is counted under `other`.
"""
GROUPS = (
    (
        "Of the fleet, by each server",
        "fleet",
        "Read from the database at most every five seconds, the same for every server: take the `max`, never the `sum`."
        " Always there.",
    ),
    ("Of a server", "server", "Of this process alone. Always there."),
    ("Of a worker and an orchestrator", "process", "Of this process alone, without the database. Always there."),
    (
        "Of the plugin `prometheus`",
        "plugin",
        "Counted where it happens, by every process with the [plugin](../../plugins/tasker_prometheus/README.md)."
        " The sum over all processes is that of the fleet.",
    ),
)
ONE_TASK = """## One task

No metric has a label for a task, a `correlation_id` or a `step_name`, under which some of them were first
published: each task would make series of its own in every metric (the steps of a batch have names of their own),
which Prometheus keeps for as long as it keeps anything: a fleet that runs a million tasks a
day would stop it within the hour. What became of one
task tells `tasker task show`, `tasker task logs` and `GET /v1/tasks/{uuid}`; its history is in
`tasker.task_transitions` and `tasker.workflow_step_transitions`.

A task of N steps that succeed at once is counted so, summed over all processes: `tasker_tasks_requests_total` 1;
`tasker_steps_enqueued_total` and `tasker_steps_claimed_total{claim_method="handed_over"}` N together (a step that
is handed over with the answer to the
result before it is never in a queue); `tasker_steps_claimed_total`, `tasker_steps_executions_total`,
`tasker_steps_successes_total`,
`tasker_steps_results_submitted_total` and `tasker_step_results_processed_total` N each;
`tasker_tasks_completions_total` 1.
"""
ALERTS_HEAD = """## Alerts

`deploy/prometheus/tasker.rules.yaml` holds them for Prometheus, `deploy/grafana/tasker.json` draws the same
thresholds.
"""


def reference() -> str:
    """The page."""
    parts = [
        HEAD,
        *map(_group, GROUPS),
        _buckets(),
        ONE_TASK,
        _labels_left_out(),
        _elsewhere(),
        ALERTS_HEAD,
        *map(_alert, ALERTS),
    ]
    return "\n".join(parts)


def _group(group: tuple[str, str, str]) -> str:
    title, teller, said = group
    chosen = [each for each in METRICS.values() if teller in each.tellers]
    return f"## {title}\n\n{said}\n\n{_table(('name', 'kind', 'labels', 'is'), map(_row, chosen))}"


def _row(metric: Told) -> Sequence[str]:
    by = f" Counted by: {metric.counted_by}." if metric.counted_by else ""
    labels = "; ".join(f"`{name}`: {values}" for name, values in metric.labels)
    return (f"`{metric.name}`", metric.kind, labels, f"{metric.meaning}{by}")


def _buckets() -> str:
    ends = ", ".join(f"{each:,g}" for each in MILLISECONDS)
    return f"The buckets of its histograms end at {ends} milliseconds, also where they are told in seconds.\n"


def _labels_left_out() -> str:
    said = "Every other label that a metric was published with is there, with the values that the tables say."
    return f"## Labels that are left out\n\n{said}\n\n{_table(('label', 'of', 'because'), LABELS_LEFT_OUT)}"


def _elsewhere() -> str:
    rows = [
        (", ".join(f"`{each}`" for each in names.split(", ")), here, why)
        for names, here, why in (*ELSEWHERE, *ALERTS_ELSEWHERE)
    ]
    return f"## Other published names\n\n{_table(('published', 'here', 'because'), rows)}"


def _alert(alert: Alert) -> str:
    rows = [(each.severity, f"`{alert.expression(each)}`", each.lasts) for each in alert.bounds]
    return f"### {alert.name}\n\n{alert.summary}. {alert.to_do}\n\n{_table(('severity', 'when', 'for'), rows)}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(_lines(head, rows)) + "\n"


def _lines(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    yield from (f"| {' | '.join(each.replace('|', chr(92) + '|') for each in row)} |" for row in rows)
