"""Check after a fault that the promises I1 to I7 hold, without using product code.

`History` is the clients' log, and `read_rows` reads the database. `complaints` returns the broken
promises.
"""

import json
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise

import apsw

HOURS = {"19:30": (1170, 1320), "22:00": (1320, 1500), None: (0, 2880)}  # the journeys' slots
HOLDING = {"confirmed", "completed", "requested", "pending", "partial"}


GRANTED = (200, 201)
DELIVERIES = "SELECT id, event_seq, endpoint_id, state, attempts FROM delivery"
RESERVATIONS = """SELECT id, idempotency_key, issued_code, table_id, table_ids, date, slot, guests,
                         arrived,
                         status, cancelled_at, checked_in_at
                  FROM reservation JOIN booking_request ON reservation_seq = seq"""
HOLDS = """SELECT r.id, h.table_id, h.date FROM hold h
           JOIN reservation r ON r.seq = h.reservation_seq"""


@dataclass
class Call:
    """One request with all its retries."""

    request: dict
    answers: list = field(default_factory=list)  # (status, body)
    lost: int = 0  # connections that closed before an answer

    @property
    def granted(self):
        """The bodies of its successful answers."""
        return [body for status, body in self.answers if status in GRANTED]

    @property
    def may_have_been_done(self):
        return bool(self.granted or self.lost)


@dataclass
class History:
    """All requests of partners and terminals to one environment."""

    bookings: dict = field(default_factory=dict)  # idempotency key -> Call
    cancels: dict = field(default_factory=dict)  # reservation id -> Call
    changes: dict = field(
        default_factory=dict
    )  # idempotency key -> Call, with the reservation's id
    scans: dict = field(default_factory=dict)  # scan id -> Call, with the reservation's id
    endpoints: dict = field(default_factory=dict)  # endpoint id -> event types

    def lost_calls(self):
        """Return how many calls got no answer."""
        kinds = (self.bookings, self.cancels, self.changes, self.scans)
        return sum(call.lost for calls in kinds for call in calls.values())

    def count(self):
        """Return how many calls were answered, by kind."""
        kinds = {"bookings": self.bookings, "cancels": self.cancels, "changes": self.changes,
                 "scans": self.scans}  # fmt: skip
        return {
            kind: sum(len(call.granted) for call in calls.values()) for kind, calls in kinds.items()
        }


@dataclass
class Rows:
    """The database rows that the checker reads."""

    reservations: dict  # id -> row
    holds: list  # (reservation id, table id, date)
    events: list  # each event with its deliveries
    integrity: list
    orphans: list


def read_rows(database):
    """Read the rows in one transaction. The box may be running."""
    connection = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        connection.set_busy_timeout(5000)
        connection.execute("BEGIN")
        reservations = select(connection, RESERVATIONS)
        events = select(connection, "SELECT seq, type, reservation_id FROM event")
        deliveries = select(connection, DELIVERIES)
        by_event = {}
        for delivery in deliveries:
            by_event.setdefault(delivery["event_seq"], []).append(delivery)
        return Rows(
            {row["id"]: row for row in reservations},
            list(connection.execute(HOLDS)),
            [event | {"deliveries": by_event.get(event["seq"], [])} for event in events],
            [row[0] for row in connection.execute("PRAGMA integrity_check")],
            list(connection.execute("PRAGMA foreign_key_check")),
        )
    finally:
        connection.close()


def select(connection, sql):
    """Run a query; return rows as dictionaries."""
    cursor = connection.cursor()
    cursor.row_trace = lambda c, row: dict(
        zip([column[0] for column in c.get_description()], row, strict=True)
    )
    return list(cursor.execute(sql))


def complaints(history, rows, received=(), *, final=False):
    """Return every broken promise. With `final`, no delivery may be pending."""
    return [
        *of_the_file(rows),
        *of_bookings(history, rows),
        *of_changes(history, rows),
        *of_cancels(history, rows),
        *of_check_ins(history, rows),
        *of_holders(rows),
        *of_events(history, rows),
        *of_deliveries(rows, received, final=final),
    ]


def of_the_file(rows):
    if rows.integrity != ["ok"]:
        yield f"I7: integrity_check says {rows.integrity}"
    if rows.orphans:
        yield f"I7: foreign_key_check says {rows.orphans}"


def of_bookings(history, rows):
    """I1, I3: exactly the granted bookings are stored, once each and as answered."""
    keys = Counter(row["idempotency_key"] for row in rows.reservations.values())
    for key, times in keys.items():
        if times > 1:
            yield f"I3: {times} rows of the key {key}"
        if key not in history.bookings:
            yield f"I1: nobody asked for the reservation of key {key}"
        elif not history.bookings[key].may_have_been_done:
            yield f"I1: the booking {key} was only ever refused and is there"
    by_key = {row["idempotency_key"]: row for row in rows.reservations.values()}
    for key, call in history.bookings.items():
        if call.granted:
            yield from of_granted_booking(key, call, by_key.get(key))


def of_granted_booking(key, call, row):
    first, *replays = call.granted
    if row is None:
        yield f"I1: the booking {key} was acknowledged and is not there"
    elif row["id"] != first["serviceReservationId"] or row["issued_code"] != first["accessCode"]:
        yield f"I1: the booking {key} is stored as something else"
    if any(body != first for body in replays):
        yield f"I3: the booking {key} was answered in two ways"
    if [status for status, _ in call.answers].count(201) > 1:
        yield f"I3: the booking {key} was made twice"


def tables_of(row):
    return json.loads(row.get("table_ids") or "null") or [row["table_id"]]


def place_of(request):
    """Return the place that a booking or a change requests, in the form of `place_in`."""
    tables = [request["tableId"], *request.get("additionalTableIds", ())]
    return tables, request["date"], request.get("slot"), request["guests"]


def place_in(row):
    return tables_of(row), row["date"], row["slot"], row["guests"]


def of_changes(history, rows):
    """I1: a reservation is where its booking or its last acknowledged change put it."""
    by_id = {}
    for call in history.changes.values():
        by_id.setdefault(call.request["reservationId"], []).append(call)
    for key, booking in history.bookings.items():
        row = next((r for r in rows.reservations.values() if r["idempotency_key"] == key), None)
        if row is None:
            continue
        changes = by_id.get(row["id"], [])
        done = [call for call in changes if call.may_have_been_done]
        if place_in(row) not in [place_of(call.request) for call in (booking, *done)]:
            yield f"I1: the reservation of {key} is where nobody put it"
        granted = {call.granted[0]["updatedAt"]: call for call in done if call.granted}
        if granted and all(len(call.answers) == 1 and not call.lost for call in done):
            last = granted[max(granted)]
            is_alone = len(granted) == len(done)
            if is_alone and place_in(row) != place_of(last.request):
                yield f"I1: the last change of {key} was acknowledged and undone"


def of_cancels(history, rows):
    """I1: cancelled reservations stay cancelled, with the instant of the answer."""
    for reservation_id, call in history.cancels.items():
        row = rows.reservations.get(reservation_id)
        for body in call.granted:
            if row is None or row["status"] != "cancelled":
                yield f"I1: the cancellation of {reservation_id} was acknowledged and undone"
            elif milliseconds(body["cancelledAt"]) != row["cancelled_at"]:
                yield f"I1: {reservation_id} was cancelled at another instant than was answered"
    for reservation_id, row in rows.reservations.items():
        call = history.cancels.get(reservation_id)
        if row["status"] == "cancelled" and not (call and call.may_have_been_done):
            yield f"I1: nobody cancelled {reservation_id}"
        elif row["status"] not in HOLDING | {"cancelled"}:
            yield f"I1: {reservation_id} came to be {row['status']}"


def of_check_ins(history, rows):
    """I1, I6: each guest got one green verdict, at the instant of `checkedInAt`."""
    entered = Counter()
    for scan_id, call in history.scans.items():
        results = {verdict["result"] for verdict in call.granted}
        if len(results) > 1:
            yield f"I3: the scan {scan_id} was judged in two ways: {results}"
        if "checked_in" in results:
            reservation_id = call.request["reservationId"]
            entered[reservation_id] += 1
            at = milliseconds(call.granted[0]["firstCheckIn"]["at"])
            yield from of_check_in(reservation_id, at, rows.reservations.get(reservation_id))
    for reservation_id, times in entered.items():
        if times > 1:
            yield f"I6: {reservation_id} was let in {times} times"
    scanned = {
        call.request["reservationId"] for call in history.scans.values() if call.may_have_been_done
    }
    for reservation_id, row in rows.reservations.items():
        if row["checked_in_at"] is not None and reservation_id not in scanned:
            yield f"I6: nobody let {reservation_id} in"


def of_check_in(reservation_id, at, row):
    if row is None or row["checked_in_at"] is None:
        yield f"I1: the check-in of {reservation_id} was acknowledged and is not there"
    elif row["checked_in_at"] != at:
        yield f"I6: the check-in of {reservation_id} was moved"
    elif row["arrived"] != row["guests"]:
        yield f"I1: {row['arrived']} of the {row['guests']} of {reservation_id} are in"


def of_holders(rows):
    """I2: no two reservations hold the same table at the same time."""
    held = {}
    for row in rows.reservations.values():
        if row["status"] in HOLDING:
            for table_id in tables_of(row):
                held.setdefault((table_id, row["date"]), []).append(HOURS[row["slot"]])
    for place, intervals in held.items():
        intervals.sort()
        for (_, ends), (starts, _) in pairwise(intervals):
            if starts < ends:
                yield f"I2: two hold {place}"
    wanted = [
        (id_, table_id, row["date"])
        for id_, row in rows.reservations.items() if row["status"] in HOLDING
        for table_id in tables_of(row)
    ]  # fmt: skip
    if sorted(wanted) != sorted(rows.holds):
        yield "I2: the holds are not those of the reservations"


def of_events(history, rows):
    """I4: each change has one event, with one delivery for each subscriber."""
    found = Counter((event["type"], event["reservation_id"]) for event in rows.events)
    expected, asked = set(), Counter(
        call.request["reservationId"]
        for call in history.changes.values() if call.may_have_been_done
    )  # fmt: skip
    for reservation_id, row in rows.reservations.items():
        expected.add(("reservation.created", reservation_id))
        if row["status"] == "cancelled":
            expected.add(("reservation.cancelled", reservation_id))
        if row["checked_in_at"] is not None:
            expected.add(("reservation.checked_in", reservation_id))
    for event in expected - found.keys():
        yield f"I4: {event} happened and was not announced"
    for event, times in found.items():
        if times > (asked[event[1]] if event[0] == "reservation.updated" else event in expected):
            yield f"I4: {event} was announced {times} times"
    for event in rows.events:
        subscribed = sorted(
            id_ for id_, types in history.endpoints.items() if event["type"] in types
        )
        if sorted(one["endpoint_id"] for one in event["deliveries"]) != subscribed:
            yield f"I4: event {event['seq']} has not one delivery for each subscriber"


def of_deliveries(rows, received, *, final):
    """I4: each delivery arrived or is pending; with `final`, it arrived. I5: with one id."""
    came = {}
    for one in received:
        meaning = (one.event, one.reservation["serviceReservationId"], one.address)
        if one.delivery != one.body["id"]:
            yield f"I5: header and body of {one.delivery} differ"
        if came.setdefault(one.delivery, meaning) != meaning:
            yield f"I5: {one.delivery} meant two things"
        if not one.signature_held:
            yield f"I5: the signature of {one.delivery} did not hold"
    if len(set(came.values())) != len(came):
        yield "I5: one event came to one endpoint under two ids"
    known = {}
    for event in rows.events:
        for delivery in event["deliveries"]:
            known[delivery["id"]] = (event["type"], event["reservation_id"])
            yield from of_delivery(delivery, came, final=final)
    for delivery_id, meaning in came.items():
        if known.get(delivery_id) != meaning[:2]:
            yield f"I5: {meaning} came as {delivery_id}, which the box does not know as that"


def of_delivery(delivery, came, *, final):
    allowed = {"delivered"} if final else {"pending", "delivered"}
    if delivery["state"] not in allowed:
        yield f"I4: delivery {delivery['id']} ended as {delivery['state']}"
    if delivery["state"] == "delivered" and delivery["id"] not in came:
        yield f"I4: delivery {delivery['id']} is called delivered and never came"


def milliseconds(instant):
    """Convert an ISO 8601 instant of an answer to milliseconds since 1970."""
    return round(datetime.fromisoformat(instant).timestamp() * 1000)
