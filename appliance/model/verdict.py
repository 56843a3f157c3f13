"""The verdict: what the door answers to a scan, and how it is reached."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from appliance.model.reservation import Reservation

COLOURS: Mapping[str, str] = {
    "checked_in": "green", "party_added": "green",
    "already_checked_in": "amber", "party_full": "amber", "not_yet": "amber", "too_late": "amber",
    "not_confirmed": "amber", "payment_due": "amber", "ambiguous": "amber",
    "cancelled": "red", "declined": "red", "revoked": "red", "wrong_venue": "red",
    "test_code": "red", "bad_signature": "red", "unknown_code": "red",
    "undone": "grey", "error": "grey",
}  # fmt: skip
# Staff may admit with a reason whoever the box knows.
OVERRIDABLE = frozenset({
    "already_checked_in", "party_full", "not_yet", "too_late", "not_confirmed", "payment_due",
    "cancelled", "declined", "revoked",
})  # fmt: skip

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_UNSETTLED = {"requested": "not_confirmed", "pending": "payment_due", "partial": "payment_due"}


@dataclass(frozen=True, slots=True)
class Seen:
    """A reservation as it stood when the door decided: nothing of it is personal."""

    id: str
    date: str
    slot: str | None
    table_id: str
    table_name: str
    guests: int
    arrived: int
    status: str


@dataclass(frozen=True, slots=True)
class FirstCheckIn:
    """When the first of a party came in, at which terminal, and who let them in.

    `clock` is `at` as the venue's wall clock showed it, HH:MM. `by` is a staff member's name,
    None where the terminal itself decided.
    """

    at: int
    clock: str
    terminal: str | None
    by: str | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was decided. `admitted` counts people: negative for an undo.

    `overrode` is the result that staff set aside with a reason.
    """

    result: str
    reservation: Seen | None = None
    admitted: int = 0
    first_check_in: FirstCheckIn | None = None
    candidates: tuple[Seen, ...] = ()
    overrode: str | None = None

    @property
    def colour(self) -> str:
        """green, amber, red or grey."""
        return COLOURS[self.result]

    def to_json(self) -> str:
        """As the door log keeps it, so that the same scanId is answered the same."""
        return _encode(
            {
                "result": self.result,
                "reservation": self.reservation and _values(self.reservation),
                "admitted": self.admitted,
                "first": self.first_check_in and _values(self.first_check_in),
                "candidates": [_values(seen) for seen in self.candidates],
                "overrode": self.overrode,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> "Verdict":
        """The verdict that `to_json` wrote."""
        kept = json.loads(text)
        return cls(
            result=kept["result"],
            reservation=Seen(*kept["reservation"]) if kept["reservation"] else None,
            admitted=kept["admitted"],
            first_check_in=FirstCheckIn(*kept["first"]) if kept["first"] else None,
            candidates=tuple(Seen(*seen) for seen in kept["candidates"]),
            overrode=kept["overrode"],
        )


def _values(part: Seen | FirstCheckIn) -> list[str | int | None]:
    return [getattr(part, name) for name in part.__slots__]


def see(reservation: Reservation, *, arrived: int | None = None) -> Seen:
    """`reservation` as the door sees it, with `arrived` people in."""
    r = reservation
    present = r.arrived if arrived is None else arrived
    return Seen(r.id, r.date, r.slot, r.table_id, r.table_name, r.guests, present, r.status)


def judge(
    reservation: Reservation,
    *, generation: int | None, arrivals: int | None, tonight: date, too_early: bool,
) -> str:  # fmt: skip
    """The result for a known guest, by the checks of docs/decisions/door.md.

    `generation` is that of the pass shown, None without one. `arrivals` is how many are here,
    None for all who are missing. `too_early`: the slot is more than `early_minutes` ahead.
    """
    if generation is not None and generation != reservation.generation:
        return "revoked"
    if not reservation.holds:
        return reservation.status
    if (evening := date.fromisoformat(reservation.date)) != tonight:
        return "not_yet" if evening > tonight else "too_late"
    if too_early:
        return "not_yet"
    return _UNSETTLED.get(reservation.status) or _count_party(reservation, arrivals)


def _count_party(reservation: Reservation, arrivals: int | None) -> str:
    missing = reservation.guests - reservation.arrived
    if missing <= 0:
        return "already_checked_in"
    if arrivals is not None and arrivals > missing:
        return "party_full"
    return "checked_in" if reservation.checked_in_at is None else "party_added"
