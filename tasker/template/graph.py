"""Graph of the declared dependencies: order, levels, ancestors; unknown names and cycles are reported."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from tasker.dataclasses import dataclass
from tasker.template.diagnostics import listed, near
from tasker.template.documents import StepDraft
from tasker.template.failure_words import WORDS
from tasker.template.step_types import Creates, Origin

Edges = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class DependencyGraph:
    """Steps by name in the order of the file, with their existing parents.

    `tainted` contains steps whose type or dependencies could not be read; rules do not report on them. `complete` is
    False if a step is missing because it could not be read.
    """

    steps: Mapping[str, StepDraft]
    parents: Edges
    tainted: frozenset[str]
    complete: bool

    @cached_property
    def children(self) -> Edges:
        """For each step its direct dependents, in the order of the file."""
        dependents: dict[str, list[str]] = {name: [] for name in self.steps}
        for name, parents in self.parents.items():
            for parent in parents:
                dependents[parent].append(name)
        return {name: tuple(children) for name, children in dependents.items()}

    @cached_property
    def order(self) -> tuple[str, ...]:
        """Topological order, ties broken by the order of the file, without steps on or below a cycle."""
        position = {name: index for index, name in enumerate(self.steps)}
        waiting = {name: len(parents) for name, parents in self.parents.items()}
        ready = [position[name] for name, count in waiting.items() if count == 0]
        names, order = list(self.steps), []
        while ready:
            name = names[heapq.heappop(ready)]
            order.append(name)
            for child in self.children[name]:
                waiting[child] -= 1
                if waiting[child] == 0:
                    heapq.heappush(ready, position[child])
        return tuple(sorted(order, key=self.is_late))

    def is_late(self, name: str) -> bool:
        """Return whether the step may be created when all others have come to rest."""
        return self.steps[name].at_rest or self.steps[name].undoes is not None

    @cached_property
    def leaves(self) -> tuple[str, ...]:
        """Ordered steps on which no other depends, without those that run at rest."""
        return tuple(name for name in self.order if not self.children[name] and not self.is_late(name))

    def depends_on(self, name: str) -> tuple[str, ...]:
        """Return the dependencies of the compiled step."""
        step = self.steps[name]
        if step.at_rest:
            return self.leaves
        return step.depends_on if step.undoes is None else (step.undoes,)

    @property
    def cyclic(self) -> bool:
        """True if there is a cycle of dependencies."""
        return len(self.order) < len(self.steps)

    @cached_property
    def below_expanding(self) -> frozenset[str]:
        """Ordered steps below a step that creates steps."""
        return self._below(filter(self.expands, self.steps))

    @cached_property
    def below_tainted(self) -> frozenset[str]:
        """Ordered steps below a tainted one."""
        return self._below(self.tainted)

    @cached_property
    def above_convergences(self) -> frozenset[str]:
        """Ordered steps that a convergence depends on, directly or transitively."""
        above: set[str] = set()
        for name in reversed(self.order):
            if any(child in above or self.is_from(child, Origin.CONVERGENCE) for child in self.children[name]):
                above.add(name)
        return frozenset(above)

    def _below(self, names: Iterable[str]) -> frozenset[str]:
        above, below = frozenset(names), set[str]()
        for name in self.order:
            if any(parent in above or parent in below for parent in self.parents[name]):
                below.add(name)
        return frozenset(below)

    @cached_property
    def levels(self) -> dict[str, int]:
        """For each ordered step its longest distance from a root."""
        levels: dict[str, int] = {}
        for name in self.order:
            parents = self.depends_on(name) if self.is_late(name) else self.parents[name]
            levels[name] = max((levels[parent] + 1 for parent in parents if parent in levels), default=0)
        return levels

    def expands(self, name: str) -> bool:
        """Return whether the completion of the step creates steps."""
        type_ = self.steps[name].type
        return type_ is not None and type_.expands

    def makes(self, name: str, what: Creates) -> bool:
        """Return whether the completion of the step creates steps of this kind."""
        type_ = self.steps[name].type
        return type_ is not None and type_.creates is what

    def is_from(self, name: str, origin: Origin) -> bool:
        """Return whether the step is created in this way."""
        type_ = self.steps[name].type
        return type_ is not None and type_.origin is origin

    def is_plain(self, name: str) -> bool:
        """Return whether the step is neither pattern nor convergence; also True if its type could not be read."""
        type_ = self.steps[name].type
        return type_ is None or type_.is_plain

    def is_static(self, name: str) -> bool:
        """Return whether the step exists from the start.

        Others are created while the task runs: patterns, steps below an expanding step, failure branches, and steps
        that run at rest.
        """
        created = name in self.below_expanding or name in self.failure_branches or self.is_late(name)
        return not (created or self.is_from(name, Origin.BATCH))

    @cached_property
    def failure_branches(self) -> frozenset[str]:
        """Ordered steps that exist only after a failure. A convergence that joins one exists in any case."""
        branches: set[str] = set()
        for name in self.order:
            below = any(parent in branches for parent in self.parents[name])
            if self.steps[name].handles is not None or (below and not self.is_from(name, Origin.CONVERGENCE)):
                branches.add(name)
        return frozenset(branches)

    @cached_property
    def may_be_missing(self) -> frozenset[str]:
        """Ordered steps that may have no result when the rest of the task goes on: they may fail, or be skipped."""
        missing, skipping = set[str](), set[str]()
        for name in self.order:
            word = WORDS[self.steps[name].on_failure]
            if any(parent in skipping for parent in self.parents[name]):
                missing.add(name)
                skipping.add(name)
            if word.letter is not None:
                missing.add(name)
                skipping.update([] if word.dependents_run else [name])
        return frozenset(missing)


def build_graph(drafts: Sequence[StepDraft], complete: bool) -> DependencyGraph:
    """Return the graph of the steps. Unknown dependencies and cycles are reported."""
    steps = {draft.name: draft for draft in drafts}
    tainted = {draft.name for draft in drafts if draft.type is None or draft.unreadable_dependencies}
    nearest = NearestMatch(steps)
    for draft in drafts:
        if _report_unknown(draft, steps, nearest):
            tainted.add(draft.name)
    parents = {d.name: tuple(n for n in d.depends_on if n in steps) for d in drafts}
    graph = DependencyGraph(steps, parents, frozenset(tainted), complete)
    _report_cycles(graph)
    return graph


class NearestMatch:
    """Suggestions for unknown step names. Each search compares all steps, so the number of searches is limited."""

    MOST = 50

    def __init__(self, steps: Mapping[str, StepDraft]) -> None:
        self._names = list(steps)
        self._found: dict[str, list[str]] = {}

    def hint(self, name: str, besides: str) -> str | None:
        """Return a hint for the unknown name in the step `besides`, which cannot depend on itself."""
        if name not in self._found and len(self._found) < self.MOST:
            self._found[name] = near(name, self._names, most=2)
        meant = next((match for match in self._found.get(name, ()) if match != besides), None)
        others = [other for other in self._names[:21] if other != besides][:20]
        return f"did you mean `{meant}`?" if meant else (f"steps: {listed(others)}" if others else None)


def _report_unknown(draft: StepDraft, steps: Mapping[str, StepDraft], nearest: NearestMatch) -> bool:
    unknown = [name for name in draft.depends_on if name not in steps]
    for name in unknown:
        hint = nearest.hint(name, draft.name)
        message = f"`{draft.title}` depends on `{name}`, which is no step"
        draft.report("T040", message, draft.dependency_location(name), hint)
    return bool(unknown)


def _report_cycles(graph: DependencyGraph) -> None:
    reported: set[str] = set()
    for name in _between_cycles(graph) if graph.cyclic else ():
        is_known = name in reported or graph.steps[name].made_for is not None  # the cycle goes through its step, too
        path = () if is_known else _cycle_through(name, graph.parents)
        if path:
            reported.update(path)
            _report_cycle(_written(path, graph), graph)


def _written(path: tuple[str, ...], graph: DependencyGraph) -> tuple[str, ...]:
    """Return the path without generated steps."""
    return tuple(name for name in path if graph.steps[name].made_for is None)


def _between_cycles(graph: DependencyGraph) -> list[str]:
    """Return the steps in a cycle or between two cycles; other steps cannot reach a cycle."""
    above = set(graph.steps).difference(graph.order)
    waiting = {name: sum(child in above for child in graph.children[name]) for name in above}
    ends = [name for name, count in waiting.items() if count == 0]
    while ends:
        name = ends.pop()
        above.discard(name)
        for parent in graph.parents[name]:
            if parent in above:
                waiting[parent] -= 1
                ends += [parent] if waiting[parent] == 0 else []
    return [name for name in graph.steps if name in above]


def _report_cycle(path: tuple[str, ...], graph: DependencyGraph) -> None:
    first = graph.steps[path[0]]
    location = first.dependency_location(path[-2])
    if len(path) == 2:
        first.report("T041", f"`{first.name}` depends on itself", location, "remove the dependency")
        return
    message = f"the dependencies form a cycle: {' -> '.join(path)}"
    first.report("T041", message, location, "the arrow means `must run before`; remove one of these dependencies")


def _cycle_through(start: str, parents: Edges) -> tuple[str, ...]:
    """Return the shortest cycle through a step, in the order of execution, or () if there is none."""
    child_of: dict[str, str] = {}
    queue = deque([start])
    while queue:
        name = queue.popleft()
        for parent in parents[name]:
            if parent == start:
                return _unwind(start, name, child_of)
            if parent not in child_of:
                child_of[parent] = name
                queue.append(parent)
    return ()


def _unwind(start: str, last: str, child_of: Mapping[str, str]) -> tuple[str, ...]:
    path = [start, last] if last != start else [start]
    while path[-1] != start:
        path.append(child_of[path[-1]])
    return tuple(path) if len(path) > 1 else (start, start)
