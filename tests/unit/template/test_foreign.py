"""Keys of other systems are refused with Tasker's own way; they never hide a key of the language."""

from __future__ import annotations

import pytest

from tasker.template.compile import compile_text
from tasker.template.foreign_keys import OF_RETRIES, OF_STEPS, OF_TEMPLATES, Ways, instead
from tasker.template.model import RETRY, STEP, TEMPLATE
from tests.unit.template.support import step, top

PLACES = [(OF_TEMPLATES, "{}: 1", top), (OF_STEPS, "{}: 1", step), (OF_RETRIES, "retry: {{{}: 1}}", step)]


@pytest.mark.parametrize(("ways", "text", "made"), PLACES, ids=["template", "step", "retry"])
def test_each_is_refused_with_what_to_do_instead(ways: Ways, text: str, made: object) -> None:
    for keys, way in ways:
        for key in keys.split():
            found = [d for d in compile_text(made(text.format(key))).errors if d.code == "T027"]  # type: ignore[operator]
            assert [d.hint for d in found] == [way], key


@pytest.mark.parametrize(("ways", "mapping"), [(OF_TEMPLATES, TEMPLATE), (OF_STEPS, STEP), (OF_RETRIES, RETRY)])
def test_no_key_of_the_language_is_among_them_and_none_is_there_twice(ways: Ways, mapping: object) -> None:
    named = [key for keys, _ in ways for key in keys.split()]
    keys = [key for key in mapping.keys if not key.only_with]  # type: ignore[attr-defined]
    known = {name for key in keys for name in key.spellings}
    assert not known & set(named)
    assert len(named) == len(set(named))


@pytest.mark.parametrize("key", ["timeout-minutes", "timeoutMinutes", "timeout_minutes", "Timeout_Minutes"])
def test_spellings_of_one_key_are_one(key: str) -> None:
    assert instead(key, OF_STEPS) == "write `timeout_seconds`"
