"""Which submissions are the same task."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasker.engine.identity import IdentityError, canonical_json, identity_hash
from tasker.errors import NotStorable
from tasker.json_values import as_stored, encode

PLAN = "payments/checkout/1.0.0"
CONTEXT = {"order": 7, "items": ["a", "b"]}


def identity(strategy="strict", context=CONTEXT, key=None, fresh="id-1", plan=PLAN) -> str:
    return identity_hash(plan, strategy, context, key, fresh)


def test_an_identity_is_a_versioned_sha256() -> None:
    assert re.fullmatch(r"v1:[0-9a-f]{64}", identity())


def test_the_computation_never_changes_within_a_version() -> None:
    assert identity() == "v1:7ae1d35b6dcb385ff7a2dad09c5828e003cd803c0cef9ba6cf45ec0240f06334"


def test_strict_takes_the_context_and_nothing_else() -> None:
    assert identity(fresh="id-1") == identity(fresh="id-2")
    assert identity(context={"order": 8, "items": ["a", "b"]}) != identity()


def test_a_new_version_of_the_template_is_a_new_identity() -> None:
    assert identity(plan="payments/checkout/1.0.1") != identity()


def test_the_order_of_keys_does_not_matter_and_the_order_of_items_does() -> None:
    assert identity(context={"items": ["a", "b"], "order": 7}) == identity()
    assert identity(context={"order": 7, "items": ["b", "a"]}) != identity()


@pytest.mark.parametrize("strategy", ["strict", "caller_provided", "always_unique"])
def test_a_key_decides_under_every_strategy(strategy: str) -> None:
    with_key = identity(strategy, key="k-1")
    assert with_key == identity("strict", context={"else": 1}, key="k-1", fresh="id-2")
    assert with_key != identity(strategy, key="k-2")


def test_always_unique_is_a_new_identity_each_time() -> None:
    assert identity("always_unique", fresh="id-1") != identity("always_unique", fresh="id-2")


def test_caller_provided_without_a_key_is_refused() -> None:
    with pytest.raises(IdentityError) as error:
        identity("caller_provided")
    assert str(error.value) == ("idempotency_key is required when named task uses CallerProvided identity strategy")


@pytest.mark.parametrize("key", ["", "  "])
def test_an_empty_key_is_refused(key: str) -> None:
    with pytest.raises(IdentityError, match="idempotency_key is empty"):
        identity(key=key)


def test_an_unknown_strategy_is_refused_with_the_known_ones() -> None:
    with pytest.raises(IdentityError) as error:
        identity("loose")
    assert error.value.hint == "expected one of: strict, caller_provided, always_unique"


def test_a_key_never_meets_a_context_or_a_fresh_identifier() -> None:
    key = identity(key=canonical_json(CONTEXT))
    assert len({key, identity(), identity("always_unique", fresh=canonical_json(CONTEXT))}) == 3


def test_equal_numbers_are_one_identity() -> None:
    assert canonical_json({"a": 1.0, "b": -0.0, "c": 1.5}) == '{"a":1,"b":0,"c":1.5}'
    assert canonical_json([True, 1]) == "[true,1]"


@pytest.mark.parametrize("whole", [2**53, 10**16, 10**20, 10**23, 10**300], ids=float)
def test_equal_whole_numbers_are_one_identity_however_large(whole: int) -> None:
    assert canonical_json({"a": float(whole)}) == canonical_json({"a": whole}) == f'{{"a":{whole}}}'


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_the_same_input_as_what_is_stored_of_it(number: float) -> None:
    assert canonical_json(number) == canonical_json(as_stored(encode(number)))


def test_numbers_that_are_stored_apart_are_two_identities() -> None:
    assert canonical_json(float(2**60)) != canonical_json(2**60), "stored as 1152921504606847000"


def test_text_is_kept_code_point_by_code_point() -> None:
    composed, decomposed = "é", unicodedata.normalize("NFD", "é")
    assert canonical_json(composed) == '"é"'
    assert canonical_json(composed) != canonical_json(decomposed)


@pytest.mark.parametrize("value", [float("nan"), {"a": float("inf")}, {1: 2}, {"a": "\0"}])
def test_what_is_not_json_has_no_identity(value) -> None:
    with pytest.raises(NotStorable):
        canonical_json(value)


@given(st.dictionaries(st.text("abc", max_size=3), st.integers() | st.lists(st.booleans()), max_size=5), st.randoms())
def test_shuffled_keys_are_one_identity(context, random) -> None:
    items = list(context.items())
    random.shuffle(items)
    assert identity(context=dict(items)) == identity(context=context)
