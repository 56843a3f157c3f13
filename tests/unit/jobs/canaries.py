"""Guests whose every field is a canary, and whether anything of them is in a file."""

import random
from datetime import date, timedelta

from appliance.privacy import ask_erasure
from appliance.reservations.change import claim
from appliance.reservations.create import enter_by_staff
from appliance.reservations.email_queue import email_guest
from appliance.reservations.rows import add_history
from tests.builders import TONIGHT, a_booking

NAME, EMAIL, PHONE, NOTES = (
    "Zqxanthe Wvuillermoz", "zqxanthe@canary.example", "+212 699 424 242", "sans zqxsafran",
)  # fmt: skip
TRACES = (b"zqxanthe", b"wvuillermoz", b"canary.example", b"699 424 242", b"699424242",
          b"zqxsafran", b"zqxreason")  # fmt: skip


async def a_guest(database, **changes):
    """A guest whose every field is a canary; the reservation's id."""
    booking = a_booking(
        customer_name=NAME, customer_email=EMAIL, customer_phone=PHONE, notes=NOTES, **changes
    )
    reservation = await database.write(enter_by_staff, booking, actor="staff:1")
    return reservation.id


def live_through(tx, reservation_id):
    """All that can be written down of a guest: letters, claim, door, history, webhooks."""
    email_guest(tx, reservation_id, "confirmation")
    claim(tx, reservation_id, b"d" * 32)
    ask_erasure(tx, reservation_id)
    add_history(tx, reservation_id, "amended", "staff:1", why=f"for {NAME}")
    terminal = {"id": tx.new_id(), "name": "Porte", "created_at": tx.now}
    tx.insert("terminal", terminal)
    tx.insert("scan", {"scan_id": "s-1", "terminal_id": terminal["id"], "at": tx.now,
                       "kind": "code", "reservation_id": reservation_id, "result": "checked_in",
                       "admitted": 2, "reason": f"zqxreason {NAME}", "verdict": "{}",
                       "hash": b"h" * 32})  # fmt: skip
    endpoint_id = tx.new_id()
    tx.insert("endpoint", {"id": endpoint_id, "url": "https://p.example/hook", "events": "[]",
                           "active": 1, "created_at": tx.now, "secret": b"s"})  # fmt: skip
    event = tx.value("SELECT seq FROM event WHERE reservation_id = :id", {"id": reservation_id})
    seq = tx.insert("delivery", {"id": tx.new_id(), "endpoint_id": endpoint_id,
                                 "event_seq": event, "due_at": tx.now})  # fmt: skip
    tx.insert("attempt", {"delivery_seq": seq, "n": 1, "at": tx.now, "duration_ms": 1,
                          "phase": "done", "outcome": "http_500", "charged": 1,
                          "excerpt": f"no {NAME}", "body_sha256": b"b" * 32})  # fmt: skip
    tx.insert("failed_request", {"delivery_seq": seq, "at": tx.now, "request": NAME.encode()})


def traces_in(folder):
    """Which canaries are in which files, whatever their case."""
    return {
        (path.name, trace)
        for path in folder.rglob("*")
        if path.is_file()
        for trace in TRACES
        if trace in path.read_bytes().lower()
    }


async def crowd(database, count):
    """Many of the same guest, whose rows grow, so that pages are split and rows move."""
    draw = random.Random(1)
    for n in range(count):
        day = date.fromisoformat(TONIGHT) + timedelta(days=1 + n)
        id_ = await a_guest(database, date=day)
        await database.write(grow, id_, n, draw.randint(0, 300))
        if n % 3 == 0:
            await database.write(grow, None, draw.randint(0, n), draw.randint(0, 300))


def grow(tx, reservation_id, offset, size):
    """Letters to and notes about one of them: more, or longer than before."""
    if reservation_id is not None:
        email_guest(tx, reservation_id, "confirmation")
    tx.execute(
        """UPDATE reservation SET notes = :notes
           WHERE id = (SELECT id FROM reservation ORDER BY id LIMIT 1 OFFSET :offset)""",
        {"notes": NOTES + "x" * size, "offset": offset},
    )
