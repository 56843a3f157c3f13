"""How endpoints are doing: each beginning and end is said once, not each attempt."""

from appliance.model.delivery import AttemptRecord
from appliance.webhooks.conditions import (
    ENDPOINT_BLOCKED,
    ENDPOINT_FAILING,
    RECEIVER_CLOCK,
    Conditions,
)
from appliance.webhooks.lane import Lane

SKEW_WARNING_S = 60


def notice_health(conditions: Conditions, lane: Lane, record: AttemptRecord) -> None:
    """Compare an outcome with what was known. What was our own fault says nothing."""
    outcome, endpoint_id = record.outcome, lane.endpoint_id
    if outcome is None or not outcome.charged:
        return
    if outcome.delivered:
        sentence = f"webhook endpoint {endpoint_id} answers again"
        conditions.end(ENDPOINT_FAILING, sentence, endpoint_id)
    else:
        sentence = f"webhook endpoint {endpoint_id} fails: {outcome.code}"
        conditions.begin(ENDPOINT_FAILING, sentence, endpoint_id)
    lane.failing = not outcome.delivered
    if outcome.code == "blocked":
        notice_blocked(conditions, endpoint_id, "its address may not be reached from this box")
    else:
        unblocked = f"webhook endpoint {endpoint_id} is no longer blocked"
        conditions.end(ENDPOINT_BLOCKED, unblocked, endpoint_id)
    _notice_clock(conditions, endpoint_id, record.clock_skew_s)


def notice_blocked(conditions: Conditions, endpoint_id: str, why: str) -> None:
    """The egress guard forbids an endpoint."""
    sentence = f"webhook endpoint {endpoint_id} is blocked: {why}"
    conditions.begin(ENDPOINT_BLOCKED, sentence, endpoint_id)


def _notice_clock(conditions: Conditions, endpoint_id: str, skew_s: int | None) -> None:
    """A receiver whose clock is off by 300 s would refuse every signature."""
    if skew_s is None:
        return
    if abs(skew_s) > SKEW_WARNING_S:
        sentence = f"the clock of webhook endpoint {endpoint_id} differs from ours by {skew_s} s"
        conditions.begin(RECEIVER_CLOCK, sentence, endpoint_id)
    else:
        sentence = f"the clock of webhook endpoint {endpoint_id} agrees with ours"
        conditions.end(RECEIVER_CLOCK, sentence, endpoint_id)
