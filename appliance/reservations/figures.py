"""The figures of an evening: arrivals by time, sources of reservations, and payments.

They are counted from the reservations and the door log, which stay when the guests' data is
erased.
"""

from collections import Counter
from dataclasses import dataclass
from datetime import date, timedelta

from appliance.database.connection import Reader
from appliance.reservations.model import Reservation
from appliance.reservations.rows import list_evening
from appliance.venue.model import find_zone, get_venue, minute_of

QUARTER_MS = 15 * 60_000
_WEEKS = 4


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of the evening `date`. `covers` are the people who came in.

    `arrivals` has the people who came in in each quarter of an hour (ms since 1970), without gaps.
    `sources` has, for each source or partner's name, the reservations and the covers.
    `payments` has the sum for each method, in whole currency units.
    """

    date: date
    expected: int
    covers: int
    reservations: int
    shows: int
    late: int
    no_shows: int
    walk_ins: int
    cancelled: int
    paid: int
    arrivals: tuple[tuple[int, int], ...]
    sources: tuple[tuple[str, int, int], ...]
    payments: tuple[tuple[str, int], ...]


def compare_evenings(reader: Reader, day: date) -> list[Figures]:
    """Return the figures of `day` and of the same weekday in the four weeks before it."""
    return [count_figures(reader, day - timedelta(weeks=week)) for week in range(_WEEKS + 1)]


def count_figures(reader: Reader, day: date) -> Figures:
    """Return the figures of one evening."""
    found = list_evening(reader, day.isoformat())
    held = [r for r in found if r.holds]
    arrivals = _read_arrivals(reader, day)
    payments: dict[str, int] = dict(reader.rows(_PAYMENTS, {"date": day.isoformat()}))
    return Figures(
        date=day,
        expected=sum(r.guests for r in held),
        covers=sum(r.arrived for r in found),
        reservations=len(held),
        shows=sum(r.arrived > 0 for r in found),
        late=_count_late(reader, day, held, arrivals),
        no_shows=sum(r.no_show for r in found),
        walk_ins=sum(r.walk_in for r in held),
        cancelled=sum(r.status == "cancelled" and not (r.no_show or r.walk_in) for r in found),
        paid=sum(payments.values()),
        arrivals=_by_quarter(arrivals),
        sources=_by_source(reader, day, held),
        payments=tuple(sorted(payments.items())),
    )


_ARRIVALS = """
SELECT s.reservation_id, coalesce(s.happened_at, s.at), s.admitted
FROM reservation r JOIN scan_log s ON s.reservation_id = r.id
WHERE r.date = :date AND s.admitted <> 0
ORDER BY s.seq"""
_PAYMENTS = """
SELECT p.method, sum(p.amount) FROM payment p JOIN reservation r ON r.id = p.reservation_id
WHERE r.date = :date AND p.voided_at IS NULL GROUP BY p.method"""
_PARTNERS = """
SELECT r.id, k.name FROM reservation r JOIN booking_request b ON b.reservation_seq = r.seq
JOIN api_key k ON k.id = b.lineage WHERE r.date = :date"""

_Arrivals = dict[str, list[int]]


def _read_arrivals(reader: Reader, day: date) -> _Arrivals:
    """Return when each person of a reservation came in, without undone arrivals."""
    arrivals: _Arrivals = {}
    for reservation_id, at, people in reader.rows(_ARRIVALS, {"date": day.isoformat()}):
        admitted = arrivals.setdefault(reservation_id, [])
        # One entry for each person, so that an undo removes the latest arrivals.
        if people < 0:
            del admitted[max(0, len(admitted) + people) :]
        else:
            admitted.extend([at] * people)
    return arrivals


def _count_late(reader: Reader, day: date, held: list[Reservation], arrivals: _Arrivals) -> int:
    """Count the parties that came in later than the venue keeps a table."""
    grace = (get_venue(reader).policies or {}).get("lateArrivalMinutes")
    minutes, zone = grace if isinstance(grace, int) else 0, find_zone(reader)
    return sum(
        min(arrivals[r.id]) > minute_of(day, r.starts + minutes, zone)
        for r in held
        if r.slot is not None and not r.walk_in and arrivals.get(r.id)
    )


def _by_quarter(arrivals: _Arrivals) -> tuple[tuple[int, int], ...]:
    counted: Counter[int] = Counter()
    for admitted in arrivals.values():
        counted.update(at // QUARTER_MS * QUARTER_MS for at in admitted)
    if not counted:
        return ()
    return tuple((at, counted[at]) for at in range(min(counted), max(counted) + 1, QUARTER_MS))


def _by_source(
    reader: Reader, day: date, held: list[Reservation]
) -> tuple[tuple[str, int, int], ...]:
    """Return the reservations and covers of each source: a partner's name, `platform`, `manual`."""
    names: dict[str, str] = dict(reader.rows(_PARTNERS, {"date": day.isoformat()}))
    counted: Counter[str] = Counter()
    covers: Counter[str] = Counter()
    for r in held:
        name = names.get(r.id, r.source) if r.source == "partner" else r.source
        counted[name] += 1
        covers[name] += r.arrived
    return tuple((name, count, covers[name]) for name, count in counted.most_common())
