"""Rules of batches: a batchable step, its batch workers, and the steps that may wait for them."""

from __future__ import annotations

import re

from tasker.contracts.step_types import Creates, Origin
from tasker.template.diagnostics import did_you_mean, listed
from tasker.template.graph import DependencyGraph

INSTANCE = re.compile(r"(.+)_\d{3,}", re.DOTALL)


def instance_names(graph: DependencyGraph) -> None:
    """Check that no step is named like an instance of a batch worker, `<name>_001`."""
    for name, step in graph.steps.items():
        instance = INSTANCE.fullmatch(name)
        if instance and instance[1] in graph.steps and graph.is_from(instance[1], Origin.BATCH):
            message = f"`{name}` is the name of an instance of the batch_worker `{instance[1]}`"
            step.report("T055", message, step.name_place(), "choose another name")


def worker_has_one_batchable(graph: DependencyGraph) -> None:
    """Check that a batch_worker depends on exactly one batchable step."""
    for name in (name for name in graph.steps if graph.is_from(name, Origin.BATCH)):
        batchables = [p for p in graph.parents[name] if graph.makes(p, Creates.BATCHES)]
        unsure = name in graph.tainted or any(p in graph.tainted for p in graph.parents[name])
        if len(batchables) != 1 and not unsure:
            step = graph.steps[name]
            found = listed(batchables) if batchables else "none"
            message = f"the batch_worker `{name}` must depend on exactly one batchable step, found {found}"
            step.report("T050", message, step.place("dependencies"), "list the step that makes its batches")


def batchable_has_worker(graph: DependencyGraph) -> None:
    """Check that a batchable step has a batch_worker; with several, an outcome without batches is ambiguous."""
    for name in (name for name in graph.steps if graph.makes(name, Creates.BATCHES)):
        workers = workers_of(name, graph)
        step = graph.steps[name]
        if not workers and graph.complete and not graph.tainted:
            message = f"the batchable step `{name}` has no batch_worker"
            hint = f"add a step of `type: batch_worker` that depends on `{name}`"
            step.report("T051", message, step.place("type"), hint)
        elif len(workers) > 1:
            message = f"the batchable step `{name}` has several batch_workers: {listed(workers)}"
            hint = "an outcome with batches names one of them; an outcome without is given to the first"
            step.report("T071", message, step.name_place(), hint)


def only_convergences_wait_for_workers(graph: DependencyGraph) -> None:
    """Check that only convergences wait for a batch_worker."""
    for name, parents in graph.parents.items():
        workers = [parent for parent in parents if graph.is_from(parent, Origin.BATCH)]
        if graph.steps[name].type is None or graph.is_from(name, Origin.CONVERGENCE):
            continue
        for worker in workers:
            step = graph.steps[name]
            message = f"`{name}` waits for the batch_worker `{worker}`, which is a pattern for many steps"
            step.report("T052", message, step.dependency_place(worker), f"make `{name}` a `type: deferred_convergence`")


def batch_config_belongs_to_batches(graph: DependencyGraph) -> None:
    """Check that `batch_config` is set on a batch_worker or on the batchable step above it."""
    for step in graph.steps.values():
        if "batch_config" in step.values and step.type is not None and not step.type.has_batches:
            message = f"`{step.name}` is a {step.type} step and has no batches"
            place = step.reading.key(*step.path, "batch_config")
            step.report("T056", message, place, "move it to the batch_worker")


def worker_template_fits(graph: DependencyGraph) -> None:
    """Check that `worker_template` names a batch_worker: one below the batchable step, or the batch_worker itself."""
    for step in graph.steps.values():
        named = step.values.get("batch_config", {}).get("worker_template")
        fitting = _fitting_templates(step.name, graph)
        if named is not None and fitting is not None and named not in fitting:
            message = f"`{named}` is no batch_worker of `{step.name}`"
            place = step.place("batch_config", "worker_template")
            step.report("T057", message, place, did_you_mean(named, fitting) or f"possible: {listed(fitting)}")


def workers_of(batchable: str, graph: DependencyGraph) -> list[str]:
    """Return the batch_workers that depend on the batchable step."""
    return [child for child in graph.children[batchable] if graph.is_from(child, Origin.BATCH)]


def _fitting_templates(name: str, graph: DependencyGraph) -> list[str] | None:
    if graph.makes(name, Creates.BATCHES):
        return workers_of(name, graph) or None
    return [name] if graph.is_from(name, Origin.BATCH) else None
