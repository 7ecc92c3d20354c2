"""Table of the step types, used by the compiler, planner, drawings, SQL and documentation.

Code never compares a type's name; it reads the type's traits. A new type is a row here and, if it does something that
no type did before, code behind a new trait.
"""

from __future__ import annotations

from enum import Enum, StrEnum

from tasker.dataclasses import dataclass


class Creates(Enum):
    """Kind of steps that the completion of a step adds to its task."""

    NOTHING = "nothing"
    BRANCHES = "branches"
    """The steps below it that its handler names."""
    BATCHES = "batches"
    """An instance of the pattern below it for each batch that its handler creates."""


class Origin(Enum):
    """Way in which a step is created."""

    PLAIN = "plain"
    """With the task; below a step that creates branches, when it is chosen or all its dependencies exist."""
    BATCH = "batch"
    """As an instance of the template's pattern for each batch."""
    CONVERGENCE = "convergence"
    """Once no step above it is undecided; it waits for the dependencies that were created."""


@dataclass(frozen=True, slots=True)
class Traits:
    """Traits of a step type."""

    does: str
    """Short description for the documentation."""
    dot: str
    """Node shape in Graphviz."""
    mermaid: tuple[str, str]
    """Text before and after its name in a Mermaid flowchart."""
    aliases: tuple[str, ...] = ()
    """Other spellings that templates may use."""
    creates: Creates = Creates.NOTHING
    origin: Origin = Origin.PLAIN
    once: bool = False
    """True: a failed attempt is the last one, unless the template sets `retry`."""
    waits: str | None = None
    """For what it waits, in progress without a worker: `time`, `event`, `person` or `task`. None: a worker runs it."""
    edge: str = "dependency"
    """Name of the edges from such a step to steps created at run time."""


_STANDARD = Traits("runs when all its dependencies are complete", "box", ("[", "]"))


class StepType(StrEnum):
    """Step types; the compiler resolves aliases."""

    traits: Traits

    def __new__(cls, value: str, traits: Traits = _STANDARD) -> StepType:
        """Create the type `value` with its traits."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.traits = traits
        return member

    STANDARD = "standard"
    DECISION = (
        "decision",
        Traits(
            "its handler names the steps to create: the *branches*, which list it among their dependencies",
            "diamond",
            ("{", "}"),
            aliases=("decision_point",),
            creates=Creates.BRANCHES,
            once=True,
        ),
    )
    DEFERRED = (
        "deferred_convergence",
        Traits(
            "waits for the dependencies that were created",
            "ellipse",
            ("([", "])"),
            aliases=("deferred",),
            origin=Origin.CONVERGENCE,
        ),
    )
    BATCHABLE = (
        "batchable",
        Traits("its handler cuts the work into batches", "box3d", ("[[", "]]"), creates=Creates.BATCHES),
    )
    BATCH_WORKER = (
        "batch_worker",
        Traits(
            "a pattern: one instance for each batch, named `NAME_001`, `NAME_002`, ...",
            "parallelogram",
            ("[/", "/]"),
            origin=Origin.BATCH,
            edge="batch_convergence_dependency",
        ),
    )

    WAIT = ("wait", Traits("waits for a time, without a worker", "hexagon", ("{{", "}}"), waits="time"))
    WAIT_FOR_EVENT = (
        "wait_for_event",
        Traits("waits for an event that is sent to it, without a worker", "hexagon", ("{{", "}}"), waits="event"),
    )
    APPROVAL = (
        "approval",
        Traits("waits for the decision of persons, without a worker", "hexagon", ("{{", "}}"), waits="person"),
    )

    TASK = (
        "task",
        Traits("starts child tasks and waits for them, without a worker", "folder", ("[[", "]]"), waits="task"),
    )

    @property
    def starts_children(self) -> bool:
        """True if such a step starts tasks of another template and waits for them."""
        return self.traits.waits == "task"

    @property
    def creates(self) -> Creates:
        """Kind of steps that the completion of such a step adds to its task."""
        return self.traits.creates

    @property
    def expands(self) -> bool:
        """True if the completion of such a step creates steps."""
        return self.traits.creates is not Creates.NOTHING

    @property
    def origin(self) -> Origin:
        """Way in which such a step is created."""
        return self.traits.origin

    @property
    def is_plain(self) -> bool:
        """True for a step with a single instance, created with its task or by a decision."""
        return self.traits.origin is Origin.PLAIN

    @property
    def is_pattern(self) -> bool:
        """True if the template's step stands for any number of instances."""
        return self.traits.origin is Origin.BATCH

    @property
    def converges(self) -> bool:
        """True if such a step joins the existing steps among its dependencies."""
        return self.traits.origin is Origin.CONVERGENCE

    @property
    def has_batches(self) -> bool:
        """True if `batch_config` applies to such a step."""
        return self.is_pattern or self.traits.creates is Creates.BATCHES


DEFAULT = StepType.STANDARD
"""Type of a step that does not set one, and of one with `for_each`."""

OF_RULES = StepType.DECISION
"""Type of a step with `rules`, and of the generated step for `when`."""
OF_LISTS, OF_ITEMS = StepType.BATCHABLE, StepType.BATCH_WORKER
"""Types that `for_each` becomes: the generated step that cuts the list, and the step that processes its items."""

WAITING = tuple(str(type_) for type_ in StepType if type_.traits.waits)
"""Names of the types whose steps wait without a worker, and have no handler."""

PATTERNS = frozenset(type_ for type_ in StepType if type_.is_pattern)
"""Types that are patterns, for types read from the database, which may contain types unknown to this release."""
