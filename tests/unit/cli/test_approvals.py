"""A vote from the command line says which way it goes."""

from __future__ import annotations

from tests.support.command_line import invoke

NOWHERE = "postgresql://nobody@nowhere.invalid/none"


def test_vote_without_a_decision_is_refused() -> None:
    result = invoke("approval", "decide", "0199c1f4-8a52", "ask", "--by", "ann", database=NOWHERE)

    assert (result.exit_code, "expected --approve or --reject" in result.output) == (2, True), result.output
