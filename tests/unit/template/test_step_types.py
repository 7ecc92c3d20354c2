"""The table of step types: nothing else in the product knows them one by one."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import tasker
from tasker.template.model import STEP_TYPES
from tasker.template.step_types import PATTERNS, Creates, Origin, StepType

PRODUCT = Path(tasker.__file__).parent
NAMED = re.compile(r"\bStepType\.[A-Z]|\.type\s*(?:==|!=|is|is not|in|not in)\s*\(?[\"']")


def test_the_product_asks_what_a_type_is_and_not_which() -> None:
    found = [
        f"{path.relative_to(PRODUCT)}:{number}: {line.strip()}"
        for path in PRODUCT.rglob("*.py")
        if path.name != "step_types.py"
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if NAMED.search(line)
    ]
    assert not found, "ask for an attribute of the type instead"


def test_a_type_is_known_by_its_name_as_text_and_over_processes() -> None:
    for type_ in StepType:
        assert (str(type_), StepType(str(type_))) == (type_.value, type_)
        assert pickle.loads(pickle.dumps(type_)) is type_
        assert type_.traits.does
    assert ("batch_worker" in PATTERNS, "standard" in PATTERNS, "of a later release" in PATTERNS) == (
        True,
        False,
        False,
    )


def test_no_spelling_means_two_types() -> None:
    spellings = [word for type_ in StepType for word in (str(type_), *type_.traits.aliases)]
    assert len(set(spellings)) == len(spellings)
    assert [*STEP_TYPES.values, *(alias for alias, _ in STEP_TYPES.aliases)] == [
        *map(str, StepType),
        *(alias for type_ in StepType for alias in type_.traits.aliases),
    ]


def test_what_creates_steps_and_what_is_created_are_told_apart() -> None:
    assert [type_.value for type_ in StepType if type_.expands] == ["decision", "batchable"]
    assert {type_.value: type_.origin for type_ in StepType if not type_.is_plain} == {
        "deferred_convergence": Origin.CONVERGENCE,
        "batch_worker": Origin.BATCH,
    }
    assert [type_.value for type_ in StepType if type_.has_batches] == ["batchable", "batch_worker"]
    assert [type_.creates for type_ in (StepType.DECISION, StepType.BATCHABLE)] == [Creates.BRANCHES, Creates.BATCHES]
