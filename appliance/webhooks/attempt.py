"""One attempt, from the request to the record of what it came to."""

import hashlib
from collections.abc import Callable

from appliance.accidents import log_accident
from appliance.clock import Clock
from appliance.model.delivery import AttemptRecord, Outcome
from appliance.webhooks.ladder import next_step
from appliance.webhooks.offline_gate import OfflineGate
from appliance.webhooks.outcomes import DONE, SENT
from appliance.webhooks.picking import Pick
from appliance.webhooks.recipient import Recipient
from appliance.webhooks.uptime import Uptime


class Attempts:
    """Makes them, with the clock, the uptime and the chance of one dispatcher."""

    def __init__(
        self, clock: Clock, uptime: Uptime, draw: Callable[[], float], gate: OfflineGate
    ) -> None:
        self._clock = clock
        self._uptime = uptime
        self._draw = draw
        self._gate = gate

    async def make(
        self, recipient: Recipient, pick: Pick, body: bytes, started_at: int
    ) -> AttemptRecord:
        """Send `body`, signed with `started_at`; every failure is an outcome.

        The wait counts from the attempt's end.
        """
        delivery, started, request = pick.delivery, self._clock.monotonic(), b""
        try:
            request = recipient.request(delivery, body, started_at)
            outcome = await recipient.post(request)
        except Exception as error:  # noqa: BLE001 - whatever it was, it is tried again
            log_accident(f"delivery {delivery.id}", error)
            outcome = Outcome(DONE, "failed")
        duration_ms = round((self._clock.monotonic() - started) * 1000)
        ended_at, ended = self._clock.now(), self._uptime.milliseconds()
        outcome = await self._gate.judge(recipient, outcome)
        step = next_step(
            delivery.attempts,
            delivered=outcome.delivered,
            charged=outcome.charged,
            draw=self._draw,
        )
        sent = outcome.phase in SENT
        return AttemptRecord(
            delivery_seq=delivery.seq,
            endpoint_id=pick.lane.endpoint_id,
            started_at=started_at,
            duration_ms=duration_ms,
            outcome=outcome,
            state=step.state,
            attempts=step.attempts,
            due_at=ended_at + step.wait_ms,
            due_uptime=ended + step.wait_ms if step.state == "pending" else None,
            replays=delivery.replays,
            body_sha256=hashlib.sha256(body).digest() if sent else None,
            request=request if sent and not outcome.delivered else None,
            retried=outcome.delivered and pick.retry,
        )

    def leave_out(self, pick: Pick) -> AttemptRecord:
        """The record of a delivery that is cancelled unsent: its reservation is no more."""
        now = self._clock.now()
        return AttemptRecord(
            delivery_seq=pick.delivery.seq,
            endpoint_id=pick.lane.endpoint_id,
            started_at=now,
            duration_ms=0,
            outcome=None,
            state="cancelled",
            attempts=pick.delivery.attempts,
            due_at=now,
            due_uptime=None,
            replays=pick.delivery.replays,
        )
