"""The types of step: the one table of what they are, which compiler, planner, drawings, SQL and documentation read.

Nothing asks for a type by its name: it asks for what the table says of it. A new type is a row here and, where it does
something that no type did, code behind the attribute that says so.
"""

from __future__ import annotations

from enum import Enum, StrEnum

from tasker.contracts.dataclasses import dataclass


class Creates(Enum):
    """What the completion of a step adds to its task."""

    NOTHING = "nothing"
    BRANCHES = "branches"
    """Those of the steps below it that its handler names."""
    BATCHES = "batches"
    """An instance of the pattern below it for each batch that its handler cuts."""


class Origin(Enum):
    """How a step comes to be."""

    PLAIN = "plain"
    """With the task; below a step that creates branches, when it is chosen or everything that it depends on exists."""
    BATCH = "batch"
    """The template has a pattern, and there is an instance of it for each batch."""
    CONVERGENCE = "convergence"
    """Once nothing above it is undecided; it waits for those of its dependencies that exist."""


@dataclass(frozen=True, slots=True)
class Traits:
    """What there is to know of a type of step."""

    does: str
    """For the documentation: what such a step is, in a few words."""
    dot: str
    """Its shape in a drawing for Graphviz."""
    mermaid: tuple[str, str]
    """What stands before and behind its name in a flowchart."""
    aliases: tuple[str, ...] = ()
    """Other spellings that templates may use."""
    creates: Creates = Creates.NOTHING
    origin: Origin = Origin.PLAIN
    once: bool = False
    """A failed attempt is the last one, unless the template says `retry`."""
    edge: str = "dependency"
    """What the edges from it to steps made while the task runs are called."""


_STANDARD = Traits("runs when all its dependencies are complete", "box", ("[", "]"))


class StepType(StrEnum):
    """The types of step; aliases are resolved by the compiler."""

    traits: Traits

    def __new__(cls, value: str, traits: Traits = _STANDARD) -> StepType:
        """The type `value`, with its row of the table."""
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
            "waits for those of its dependencies that exist",
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

    @property
    def creates(self) -> Creates:
        """What the completion of such a step adds to its task."""
        return self.traits.creates

    @property
    def expands(self) -> bool:
        """True when the completion of such a step creates steps."""
        return self.traits.creates is not Creates.NOTHING

    @property
    def origin(self) -> Origin:
        """How such a step comes to be."""
        return self.traits.origin

    @property
    def is_plain(self) -> bool:
        """True for a step that there is one of, and that comes to be with its task or by a choice."""
        return self.traits.origin is Origin.PLAIN

    @property
    def is_pattern(self) -> bool:
        """True when the template's step stands for any number of instances."""
        return self.traits.origin is Origin.BATCH

    @property
    def converges(self) -> bool:
        """True when such a step joins what exists."""
        return self.traits.origin is Origin.CONVERGENCE

    @property
    def has_batches(self) -> bool:
        """True when `batch_config` means something to such a step."""
        return self.is_pattern or self.traits.creates is Creates.BATCHES


DEFAULT = StepType.STANDARD
"""The type of a step that does not say one."""

PATTERNS = frozenset(type_ for type_ in StepType if type_.is_pattern)
"""To look for a type that was read from the database, which may know more of them."""
