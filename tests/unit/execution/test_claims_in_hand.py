"""What a worker holds is a claim, not a step: late news about one attempt never touch the next one."""

from __future__ import annotations

from tasker.execution.in_flight import InFlightClaim, InFlightClaims
from tasker.handlers.claims import Claim


def claim(token: int) -> Claim:
    return Claim("step", "task", "s", 1, 0, "space", token, token, 3, "correlation")


def holding(running: InFlightClaim) -> InFlightClaims:
    claims = InFlightClaims()
    claims.take(running)
    return claims


def test_a_beat_that_finds_the_former_attempt_gone_does_not_stop_the_next_one() -> None:
    running = InFlightClaim(claim(2), "handler")
    claims = holding(running)
    claims.stop_lost([("step", 1)])
    assert not running.cancel.is_set()

    claims.stop_lost([("step", 2)])
    assert running.cancel.is_set()


def test_a_claim_that_is_answered_again_is_known_to_be_in_hand_while_its_handler_counts() -> None:
    """A database that has forgotten a claim gives the same token out again, perhaps to the worker that has it."""
    running = InFlightClaim(claim(2), "handler")
    claims = holding(running)
    assert [claims.has("step", token) for token in (1, 2)] == [False, True]

    claims.stop_steps(["step"])
    assert not claims.has("step", 2), "what it comes to no longer counts"


def test_a_stored_result_lets_go_of_its_own_claim_and_not_of_the_next_attempt() -> None:
    running = InFlightClaim(claim(2), "handler")
    claims = holding(running)
    claims.discard([claim(1)])
    assert claims.pairs() == [("step", 2)]

    claims.discard([claim(2)])
    assert not claims.pairs()
