"""Deployment modes as pure decisions: effective modes, the automaton of a listener, statistics and health."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasker.messaging.listening_modes import (
    DeploymentMode,
    EventSettings,
    HealthStatus,
    ListenerState,
    ListeningHealth,
    MessageSource,
    Notice,
    Tally,
    effective_mode,
    judge_health,
    longest_pause,
    notice,
)
from tasker.messaging.port import Capabilities
from tasker.settings.listening import HealthReporting, Listener

POLLING, EVENTS, HYBRID = DeploymentMode.POLLING_ONLY, DeploymentMode.EVENT_DRIVEN_ONLY, DeploymentMode.HYBRID
IN_THE_DATABASE = Capabilities(push=True, transactional=True, fallback_polling=True)
PUSHING = Capabilities(push=True)
SETTINGS = EventSettings(
    poll_ms=2000,
    lost_poll_ms=300,
    listener=Listener(max_retry_attempts=2),
    health=HealthReporting(max_consecutive_errors=3),
)


def test_the_modes_are_spelled_as_published() -> None:
    assert [*map(str, DeploymentMode)] == ["PollingOnly", "EventDrivenOnly", "Hybrid"]


@pytest.mark.parametrize(
    ("configured", "in_database", "pushing"),
    [(POLLING, POLLING, POLLING), (EVENTS, EVENTS, EVENTS), (HYBRID, HYBRID, EVENTS)],
)
def test_the_effective_mode_is_that_of_the_table(
    configured: DeploymentMode, in_database: DeploymentMode, pushing: DeploymentMode
) -> None:
    assert effective_mode(configured, IN_THE_DATABASE) is in_database
    assert effective_mode(configured, PUSHING) is pushing
    assert effective_mode(configured, Capabilities()) is POLLING, "nothing announces anything there"


@pytest.mark.parametrize(
    ("mode", "listening", "seconds"),
    [
        (POLLING, True, 2.0),
        (POLLING, False, 2.0),
        (EVENTS, True, None),
        (EVENTS, False, 0.3),
        (HYBRID, True, 2.0),
        (HYBRID, False, 0.3),
    ],
)
def test_only_a_mode_whose_listener_works_may_do_without_polls(
    mode: DeploymentMode, listening: bool, seconds: float | None
) -> None:
    assert longest_pause(SETTINGS, mode, listening) == seconds


def test_polls_are_not_slower_when_the_listener_is_lost() -> None:
    assert longest_pause(replace(SETTINGS, poll_ms=100), HYBRID, listening=False) == 0.1


@given(events=st.lists(st.booleans(), max_size=60), limit=st.integers(0, 5))
def test_each_switch_is_told_once_and_a_long_loss_loudly_once(events: list[bool], limit: int) -> None:
    state, told, fallbacks = ListenerState(), list[Notice](), 0
    for connected in events:
        after = state.connected() if connected else state.lost()
        said = notice(state, after, limit)
        told += [] if said is Notice.NONE else [said]
        assert after.is_listening is connected
        assert after.failures == (0 if connected else state.failures + 1)
        fallbacks += not connected and state.reception is not MessageSource.POLLING_FALLBACK
        if said is Notice.NONE:
            assert after.is_listening is state.is_listening
        state = after
    assert state.fallbacks == fallbacks
    words = [each for each in told if each is not Notice.STILL_LOST]
    assert all(first is not second for first, second in pairwise(words)) or limit == 0
    assert Notice.LISTENING not in told[1:]
    longest = max(map(len, "".join("l" if not each else " " for each in events).split()), default=0)
    assert (Notice.STILL_LOST in told) == (longest > limit)


def test_a_listener_goes_from_events_to_polling_and_back() -> None:
    state = ListenerState().connected()
    assert state.reception is MessageSource.EVENT_DRIVEN
    state = state.lost()
    assert state.reception is MessageSource.POLLING_FALLBACK
    assert state.connected() == ListenerState(MessageSource.EVENT_DRIVEN, 0, 1)


def test_statistics_of_nothing_are_those_of_a_system_without_fault() -> None:
    found = Tally().statistics(0.0, HYBRID)
    assert (found.success_rate, found.deployment_mode_score, found.average_latency_ms) == (1.0, 1.0, None)


def test_statistics_count_what_was_found_and_how() -> None:
    tally = Tally()
    for number in range(8):
        tally.succeeded(float(number), received=3 * (number % 2 == 0), polled=number == 4, seconds=0.01 * number)
    tally.look_failed(8.0)
    found = tally.statistics(9.0, HYBRID)
    assert (found.events_processed, found.events_failed, found.found_by_polling) == (4, 1, 1)
    assert (tally.looks, tally.messages, tally.messages_by_polling) == (9, 12, 3)
    assert (found.success_rate, found.deployment_mode_score) == (0.8, 0.75)
    assert found.average_latency_ms == pytest.approx(30.0)
    assert found.processing_rate == pytest.approx(4 / 60)
    assert tally.statistics(70.0, HYBRID).processing_rate == 0.0
    assert tally.statistics(9.0, POLLING).deployment_mode_score == 1.0, "there a poll is the mode's own way"


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 30)), max_size=50))
def test_errors_of_the_last_minute_are_those_of_the_last_minute(events: list[tuple[bool, float]]) -> None:
    tally, now, failures = Tally(), 0.0, list[float]()
    for failed, pause in events:
        now += pause
        if failed:
            tally.look_failed(now)
            failures.append(now)
        else:
            tally.succeeded(now, received=random.Random(now).getrandbits(1), polled=False, seconds=None)
    assert tally.errors_in_last_minute(now) == sum(at > now - 60 for at in failures)


def failed(times: int, every: float = 0.0) -> Tally:
    tally = Tally()
    for number in range(times):
        tally.look_failed(number * every)
    return tally


def test_health_names_its_reason() -> None:
    lost = ListenerState().lost()
    for_ever = lost.lost().lost()
    assert judge_health(SETTINGS, HYBRID, Tally(), 0.0) == ListeningHealth()
    assert judge_health(SETTINGS, HYBRID, Tally(), 0.0, running=False).status is HealthStatus.CRITICAL
    assert judge_health(SETTINGS, HYBRID, Tally(), 0.0, lost=for_ever).status is HealthStatus.DEGRADED
    assert judge_health(SETTINGS, EVENTS, Tally(), 0.0, lost=lost).status is HealthStatus.DEGRADED
    unhealthy = judge_health(SETTINGS, EVENTS, Tally(), 0.0, lost=for_ever)
    assert (unhealthy.status, "3 times" in unhealthy.reason) == (HealthStatus.UNHEALTHY, True)


def test_errors_in_a_row_are_unhealthy_until_one_look_succeeds() -> None:
    tally = failed(3)
    assert judge_health(SETTINGS, HYBRID, tally, 0.0) == ListeningHealth(HealthStatus.UNHEALTHY, "3 errors in a row")
    tally.succeeded(0.0, received=False, polled=False, seconds=None)
    assert judge_health(SETTINGS, HYBRID, tally, 0.0) == ListeningHealth()


def test_more_errors_in_a_minute_than_allowed_are_unhealthy_even_between_successes() -> None:
    settings = replace(SETTINGS, health=SETTINGS.health.replace(error_rate_threshold_per_minute=2))
    tally = Tally()
    for number in range(3):
        tally.look_failed(float(number))
        tally.succeeded(float(number), received=True, polled=False, seconds=None)
    assert judge_health(settings, HYBRID, tally, 3.0).reason == "3 errors in the last minute"
    assert judge_health(settings, HYBRID, tally, 61.0) == ListeningHealth()
    silent = replace(settings, health=settings.health.replace(enabled=False))
    assert judge_health(silent, HYBRID, tally, 3.0) == ListeningHealth()
