"""Values of frozen classes that are made in another way are no other values."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, dataclass, replace

import pytest

from tasker.contracts.frozen import maker_of
from tasker.contracts.hook_arguments import AttemptEnded, AttemptStarted, StoredAttempt


@dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: int = 2


def test_a_value_is_as_one_that_its_class_has_made() -> None:
    made = maker_of(Point)(1)
    assert (made, hash(made), repr(made), type(made)) == (Point(1), hash(Point(1)), "Point(x=1, y=2)", Point)
    assert maker_of(Point)(1, y=3) == replace(made, y=3) != made
    assert pickle.loads(pickle.dumps(made)) == copy.copy(made) == made
    with pytest.raises(FrozenInstanceError):
        made.x = 3  # type: ignore[misc]  # the point
    with pytest.raises(TypeError):
        maker_of(Point)()  # type: ignore[call-arg]  # the point


@pytest.mark.parametrize("kind", [AttemptStarted, AttemptEnded, StoredAttempt])
def test_what_plugins_hear_of_attempts_can_be_made_so(kind: type) -> None:
    given = [each.name for each in kind.__dataclass_fields__.values()]
    assert maker_of(kind)(*given) == kind(*given)
