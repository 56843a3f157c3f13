"""One event on its way to one endpoint, and what each attempt at it came to."""

from dataclasses import dataclass, replace

STATES = ("pending", "delivered", "dead", "cancelled")


@dataclass(frozen=True, slots=True)
class DueDelivery:
    """A pending delivery that may be sent now, and the event it carries.

    `attempts` counts the charged ones since its creation or its last replay; `replays` counts
    those. `reservation_id` is None for `webhook.test`.
    """

    seq: int
    id: str
    attempts: int
    event_type: str
    reservation_id: str | None
    occurred_at: int
    replays: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one attempt ended: where, with which typed result, and what was seen of the answer.

    `code` is `delivered`, `http_<status>`, or the name of a failure such as `timeout`. An
    attempt that is not `charged` failed by our own fault and moves no ladder. `receiver_time`
    is what its clock said when it answered, in ms since 1970.
    """

    phase: str
    code: str
    http_status: int | None = None
    remote_address: str | None = None
    excerpt: str | None = None
    charged: bool = True
    receiver_time: int | None = None

    @property
    def delivered(self) -> bool:
        """Whether the receiver took it: 2xx in time (interface, section 6.3)."""
        return self.code == "delivered"


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """An attempt's outcome and what becomes of its delivery, ready to be written.

    `outcome` None means that nothing was sent: the delivery is cancelled. `replays` is the
    number that the delivery had when the attempt began. `request` is what was sent, when that
    is to be kept; `retried` says that a request of an earlier attempt may be kept.
    """

    delivery_seq: int
    endpoint_id: str
    started_at: int
    duration_ms: int
    outcome: Outcome | None
    state: str
    attempts: int
    due_at: int
    due_uptime: int | None
    replays: int = 0
    body_sha256: bytes | None = None
    request: bytes | None = None
    retried: bool = False

    @property
    def clock_skew_s(self) -> int | None:
        """The receiver's clock minus ours in seconds, as its answer said."""
        if self.outcome is None or self.outcome.receiver_time is None:
            return None
        answered_at = self.started_at + self.duration_ms
        return round((self.outcome.receiver_time - answered_at) / 1000)

    def unquoted(self) -> "AttemptRecord":
        """The same without a word of what was sent and answered, and without its digest."""
        outcome = None if self.outcome is None else replace(self.outcome, excerpt=None)
        return replace(self, outcome=outcome, request=None, body_sha256=None)
