"""After a guest is erased, no byte of the guest's data remains in the files of the box."""

import asyncio
import json
import logging
import random
import shutil
from dataclasses import replace
from datetime import date, timedelta

import pytest

from appliance.database.database import Database
from appliance.database.vacuum import copy_database
from appliance.jobs.nightly import Retention
from appliance.privacy import (
    LIST,
    Erasures,
    append_to_list,
    ask_erasure,
    erase_guest,
    export_guests,
    read_list,
)
from appliance.reservations.by_guest import claim
from appliance.reservations.create import enter_by_staff
from appliance.reservations.email_queue import email_guest
from appliance.reservations.rows import add_history, get_reservation
from appliance.scheduler import Scheduler
from tests.builders import TONIGHT, a_booking, table_id

NAME, EMAIL, PHONE, NOTES = (
    "Zqxanthe Wvuillermoz", "zqxanthe@canary.example", "+212 699 424 242", "sans zqxsafran",
)  # fmt: skip
TRACES = (b"zqxanthe", b"wvuillermoz", b"canary.example", b"699 424 242", b"699424242",
          b"zqxsafran", b"zqxreason")  # fmt: skip


async def a_guest(database, **changes):
    """Create a guest whose every field contains a marker. Return the reservation's id."""
    booking = a_booking(
        customer_name=NAME, customer_email=EMAIL, customer_phone=PHONE, notes=NOTES, **changes
    )
    reservation = await database.write(enter_by_staff, booking, actor="staff:1")
    return reservation.id


def live_through(tx, reservation_id):
    """Store everything that can be stored about a guest: emails, claim, door, history, webhooks."""
    email_guest(tx, reservation_id, "confirmation")
    claim(tx, reservation_id, b"d" * 32)
    ask_erasure(tx, reservation_id)
    add_history(tx, reservation_id, "amended", "staff:1", why=f"for {NAME}")
    terminal = {"id": tx.new_id(), "name": "Porte", "created_at": tx.now}
    tx.insert("terminal", terminal)
    tx.insert("scan_log", {"scan_id": "s-1", "terminal_id": terminal["id"], "at": tx.now,
                       "kind": "code", "reservation_id": reservation_id, "result": "checked_in",
                       "admitted": 2, "reason": f"zqxreason {NAME}", "verdict": "{}"})  # fmt: skip
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
    """Return which markers are in which files, regardless of case."""
    return {
        (path.name, trace)
        for path in folder.rglob("*")
        if path.is_file()
        for trace in TRACES
        if trace in path.read_bytes().lower()
    }


async def crowd(database, count):
    """Create many reservations of the same guest that grow, so that pages split and rows move."""
    draw = random.Random(1)
    for n in range(count):
        day = date.fromisoformat(TONIGHT) + timedelta(days=1 + n)
        id_ = await a_guest(database, date=day)
        await database.write(grow, id_, n, draw.randint(0, 300))
        if n % 3 == 0:
            await database.write(grow, None, draw.randint(0, n), draw.randint(0, 300))


def grow(tx, reservation_id, offset, size):
    """Add longer emails and notes about one reservation."""
    if reservation_id is not None:
        email_guest(tx, reservation_id, "confirmation")
    tx.execute(
        """UPDATE reservation SET notes = :notes
           WHERE id = (SELECT id FROM reservation ORDER BY id LIMIT 1 OFFSET :offset)""",
        {"notes": NOTES + "x" * size, "offset": offset},
    )


def copy_of(path, folder):
    """Return a copy of a database."""
    folder.mkdir()
    copy_database(path, folder / "backup.db")
    return folder


async def following(environment):
    """Start a scheduler that runs the erasures of an environment, as `serve` does."""
    erasures, scheduler = Erasures(environment), Scheduler(environment.database.clock)
    await erasures.start()
    scheduler.start(erasures.job)
    await scheduler.settle()
    return scheduler


@pytest.fixture
async def erasures(box):
    scheduler = await following(box.live)
    yield scheduler
    await scheduler.close()


async def test_no_bytes_of_an_erased_guest_remain_in_any_file(box, erasures, tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    database = box.live.database
    await crowd(database, 60)
    id_ = await a_guest(database)
    await database.write(live_through, id_)
    assert {trace for _, trace in traces_in(tmp_path)} >= set(TRACES) - {b"699424242"}

    found = await database.read(lambda reader: reader.rows("SELECT id FROM reservation"))
    for (reservation_id,) in found:
        await database.write(erase_guest, reservation_id, actor="staff:1")
    await asyncio.sleep(0)
    await erasures.settle()

    assert traces_in(tmp_path) == set()
    assert traces_in(copy_of(database.path, tmp_path / "copy")) == set()
    assert not any(trace.decode() in caplog.text.lower() for trace in TRACES)
    erased = await database.read(get_reservation, id_)
    assert (erased.status, erased.table_id) == ("confirmed", table_id("T1"))
    assert erased.access_code is not None
    export = await database.read(export_guests, [id_])
    assert not any(trace in json.dumps(export).lower().encode() for trace in TRACES)


async def test_an_export_contains_everything_stored_about_the_guest(box):
    database = box.live.database
    id_ = await a_guest(database)
    await database.write(live_through, id_)

    export = await database.read(export_guests, [id_])

    (held,) = export["reservations"]
    assert held["customer"] == {"name": NAME, "email": EMAIL, "phone": PHONE, "language": None}
    assert held["notes"] == NOTES
    assert [letter["to"] for letter in held["letters"]] == [EMAIL]
    assert [scan["reason"] for scan in held["scans"]] == [f"zqxreason {NAME}"]
    assert [sent["host"] for sent in held["sentTo"]] == ["p.example"]
    assert held["keptInBrowsers"] == 1
    assert held["erasureAskedAt"] is not None
    assert {line["what"] for line in held["history"]} >= {"created", "claimed", "amended"}
    json.dumps(export)


async def test_guests_brought_back_by_a_restore_are_erased_again_before_the_box_starts(
    box, erasures, tmp_path
):
    database = box.live.database
    id_ = await a_guest(database)
    kept = copy_of(database.path, tmp_path.parent / f"{tmp_path.name}-kept")
    await database.write(erase_guest, id_, actor="staff:1")
    await asyncio.sleep(0)
    await erasures.settle()
    assert read_list(tmp_path, "live") == [id_]
    shutil.copy(kept / "backup.db", tmp_path / "restored.db")

    # The restored database with the erasure list, which a restore does not replace.
    restored = Database(tmp_path / "restored.db", box.clock, box.tokens, box.zones)
    environment = replace(box.live, database=restored)
    assert (await restored.read(get_reservation, id_)).customer_name == NAME
    again = await following(environment)
    assert (await restored.read(get_reservation, id_)).customer_name is None
    await again.close()
    await restored.close()

    assert traces_in(tmp_path) == set()


async def test_a_name_that_staff_entered_after_an_erasure_survives_the_next_start(box, erasures):
    database = box.live.database
    id_ = await a_guest(database)
    await database.write(erase_guest, id_, actor="staff:1")
    await asyncio.sleep(0)
    await erasures.settle()
    await database.write(
        lambda tx: tx.execute("UPDATE reservation SET customer_name = 'Omar' WHERE id = :id",
                              {"id": id_})
    )  # fmt: skip

    again = await following(box.live)
    await again.close()

    assert (await database.read(get_reservation, id_)).customer_name == "Omar"


async def test_contacts_are_deleted_thirty_days_after_the_evening_and_not_earlier(
    box, clock, tmp_path
):
    database, retention = box.live.database, Retention(box.live)
    id_ = await a_guest(database)
    await database.write(live_through, id_)

    clock.set("2026-12-22T05:59:00Z")
    await retention.forget()
    assert (await database.read(get_reservation, id_)).customer_name == NAME

    clock.set("2026-12-22T06:01:00Z")
    await retention.forget()
    assert (await database.read(get_reservation, id_)).customer_name is None
    assert traces_in(tmp_path) == set()
    assert read_list(tmp_path, "live") == []


SPOILED = (
    b'{"environment": "li\xff',
    b'"a sentence"',
    b"[1, 2]",
    b"null",
    b'{"environment": "live"}',
    b'{"environment": "live", "reservation": ["a"]}',
    b"[" * 100_000,
)


@pytest.mark.parametrize("line", SPOILED, ids=range(len(SPOILED)))
def test_an_unreadable_line_of_the_erasure_list_hides_no_other_line(tmp_path, line):
    append_to_list(tmp_path, "live", {"a": 0})
    (tmp_path / LIST).write_bytes((tmp_path / LIST).read_bytes() + line)

    append_to_list(tmp_path, "live", {"b": 1})

    assert read_list(tmp_path, "live") == ["a", "b"]


async def test_a_box_with_a_damaged_erasure_list_starts_and_rebuilds_it(box, tmp_path):
    database = box.live.database
    reservation = await database.write(enter_by_staff, a_booking(), actor="staff:1")
    await database.write(erase_guest, reservation.id, actor="staff:1")
    (tmp_path / LIST).write_bytes(b'\n{"environment": "live", "reserv\xff\n')

    await (await following(box.live)).close()

    assert read_list(tmp_path, "live") == [reservation.id]
