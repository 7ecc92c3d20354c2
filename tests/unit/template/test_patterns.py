"""Patterns of JSON Schemas: what people write works, and no text makes one take more than linear time."""

from __future__ import annotations

import pytest

from tasker.template.schema_limits import PatternRefused, compiled, search


@pytest.mark.parametrize(
    ("pattern", "found", "not_found"),
    [
        ("b", ["abc", "b"], ["ac"]),
        (r"^[\w.-]+@[\w-]+\.[a-z]{2,}$", ["a.b@c-d.de", "jörg@x.org"], ["a@b", "a@b.de\n"]),
        (r"^\d{4}-\d{2}$", ["2025-06"], ["2025-6"]),
        (r"^\u00e9\x41$", ["éA"], ["e"]),
        (r"^\p{L}+\p{Script=Greek}$", ["aéω"], ["aé1"]),
        (r"^a\/b\-\_\@$", ["a/b-_@"], ["ab"]),
        (r"^\<b\>$", ["<b>"], ["b"]),
        (r"^[[{3}&&~~]+$", ["[{3}&~"], ["4"]),
        (r"^[^]]$", ["a"], ["]"]),
        (r"^[]a]+$", ["]a"], ["b"]),
        (r"^[\[\]\b]+$", ["[]\b"], ["b"]),
        (r"^x{foo}{2}$", ["x{foo}}"], ["xfoo"]),
        (r"^\é$", ["é"], ["e"]),
        (r"a\Z", ["ba"], ["a\n"]),
        (r"^(?P<year>[0-9]+)(?i:x)$", ["1X"], ["X"]),
        ("^(ab){1000}$", ["ab" * 1000], ["ab"]),
        ("", [""], []),
    ],
)
def test_a_pattern_of_either_dialect_means_what_it_meant(pattern: str, found: list[str], not_found: list[str]) -> None:
    assert all(search(pattern, text) for text in found)
    assert not any(search(pattern, text) for text in not_found)


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        (
            "(?=x)",
            "look-around, including look-ahead and look-behind, is not supported; patterns are matched in linear",
        ),
        (r"(a)\1", "backreferences are not supported; patterns are matched in linear time"),
        ("(", "unclosed group"),
        ("[a--b]", r"write \- for a dash beside another one"),
        ("((a{1,100}){2}b){10}", "its repetitions come to 2000, and 1000 is the most"),
        ("a" * 10_001, "it has 10001 characters, and 10000 is the most"),
        (r"\pL{1000}" * 100, "Compiled regex exceeds size limit"),
    ],
)
def test_what_cannot_be_matched_in_linear_time_is_refused_with_the_reason(pattern: str, reason: str) -> None:
    with pytest.raises(PatternRefused) as refused:
        compiled(pattern)
    assert reason in str(refused.value)
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize("pattern", ["^(a+)+$", "(a|a)*$", "(a*)*b", "(.*)*x"])
def test_a_pattern_that_explodes_elsewhere_answers_for_a_text_of_megabytes(pattern: str) -> None:
    assert not search(pattern + "!", "a" * 1_000_000 + "?")


def test_a_text_that_is_too_long_for_a_pattern_of_many_repetitions_is_refused() -> None:
    with pytest.raises(PatternRefused, match="expected a text of at most 50000 characters, got 1000000"):
        search("([ab]{100}){10}", "a" * 1_000_000)
