"""The client's own log: what was asked, what was answered, and what never was."""

from dataclasses import dataclass, field

GRANTED = (200, 201)


@dataclass
class Call:
    """One request, however often it was sent."""

    request: dict
    answers: list = field(default_factory=list)  # (status, body)
    lost: int = 0  # times that the connection died before an answer

    @property
    def granted(self):
        """The bodies of its acknowledgements."""
        return [body for status, body in self.answers if status in GRANTED]

    @property
    def may_have_been_done(self):
        return bool(self.granted or self.lost)


@dataclass
class History:
    """Everything that partners and doors asked of one environment."""

    bookings: dict = field(default_factory=dict)  # idempotency key -> Call
    cancels: dict = field(default_factory=dict)  # reservation id -> Call
    scans: dict = field(default_factory=dict)  # scan id -> Call, with the reservation's id
    endpoints: dict = field(default_factory=dict)  # endpoint id -> event types

    def granted_bookings(self):
        """(idempotency key, request, result) of each acknowledged booking."""
        return [
            (key, call.request, call.granted[0])
            for key, call in self.bookings.items()
            if call.granted
        ]

    def lost_calls(self):
        """How many calls got no answer."""
        every = (*self.bookings.values(), *self.cancels.values(), *self.scans.values())
        return sum(call.lost for call in every)

    def count(self):
        """How many calls were answered, by kind."""
        kinds = {"bookings": self.bookings, "cancels": self.cancels, "scans": self.scans}
        return {
            kind: sum(len(call.granted) for call in calls.values()) for kind, calls in kinds.items()
        }
