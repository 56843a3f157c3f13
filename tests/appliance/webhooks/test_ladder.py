"""Which step follows an attempt."""

import pytest

from appliance.webhooks.ladder import longest_wait, next_step

MINUTE = 60_000


def after_failures(count, draw=lambda: 0.0, charged=True):
    return next_step(count - 1, delivered=False, charged=charged, draw=draw)


@pytest.mark.proves("decision: When is it tried again?", "interface 8: Webhook retries")
@pytest.mark.parametrize(("failures", "minutes"), [(1, 1), (2, 5), (3, 30), (4, 120), (5, 720)])
def test_the_waits_are_those_of_the_contract(failures, minutes):
    step = after_failures(failures)

    assert (step.state, step.attempts, step.wait_ms) == ("pending", failures, minutes * MINUTE)


@pytest.mark.proves("decision: When is it tried again?")
def test_after_the_sixth_failure_a_delivery_is_dead():
    assert after_failures(6).state == "dead"
    assert after_failures(6).attempts == 6


def test_a_success_on_any_attempt_delivers():
    for before in range(6):
        step = next_step(before, delivered=True, charged=True, draw=lambda: 0.0)

        assert (step.state, step.attempts) == ("delivered", before + 1)


@pytest.mark.parametrize(
    ("failures", "most"), [(1, 6_000), (2, 30_000), (3, 60_000), (4, 60_000), (5, 60_000)]
)
def test_up_to_ten_percent_or_a_minute_is_added_and_nothing_taken_away(failures, most):
    earliest = after_failures(failures).wait_ms
    latest = after_failures(failures, draw=lambda: 0.999_999).wait_ms

    assert earliest <= latest < earliest + most
    assert latest > earliest + most * 0.99


@pytest.mark.proves("decision: The venue is offline?")
def test_an_attempt_that_is_our_own_fault_stays_on_its_rung():
    for charged_before in range(6):
        step = next_step(charged_before, delivered=False, charged=False, draw=lambda: 0.0)

        assert step.state == "pending"
        assert step.attempts == charged_before


def test_the_longest_wait_covers_every_draw():
    for failures in range(1, 6):
        assert after_failures(failures, draw=lambda: 0.999_999).wait_ms < longest_wait(failures)
    assert longest_wait(0) == 0
