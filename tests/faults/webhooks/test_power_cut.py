"""A power cut (row 15), modelled: of the WAL only a first part reached the disk.

Whatever the length of that part, a booking is there with its event and its delivery or not at
all; and what was acknowledged lies within what had been synced by then.
"""

import random
import shutil

import apsw

from tests.soak.scale import FULL

CUTS = 500 if FULL else 40
BOOKINGS = 40


async def test_after_a_cut_a_booking_is_there_with_its_delivery_or_not_at_all(
    world, receiver, box, tmp_path
):
    await world.register(receiver.url)
    database, wal = world.database.path, world.database.path.with_name("live.db-wal")
    synced = []  # (length of the WAL at an acknowledgement, what was acknowledged)
    for _ in range(BOOKINGS):
        [reservation_id] = await world.book()
        synced.append((wal.stat().st_size, reservation_id))
    cut = tmp_path / "cut"
    cut.mkdir()
    draw = random.Random(1)
    whole = wal.read_bytes()
    lengths = [length for length, _ in synced] + [draw.randrange(len(whole)) for _ in range(CUTS)]

    for length in lengths:
        shutil.copy(database, cut / "live.db")
        (cut / "live.db-wal").write_bytes(whole[:length])
        (cut / "live.db-shm").unlink(missing_ok=True)
        booked, told, sound = survivors(cut / "live.db")

        assert sound == "ok"
        assert booked == told
        assert {id_ for at, id_ in synced if at <= length} <= set(booked)


def survivors(path):
    """Reservations, and those whose event has its delivery; whether the file is sound."""
    connection = apsw.Connection(str(path))
    try:
        booked = [id_ for (id_,) in connection.execute("SELECT id FROM reservation ORDER BY id")]
        told = connection.execute(
            """SELECT reservation_id FROM event JOIN delivery ON event_seq = event.seq
               WHERE type = 'reservation.created' ORDER BY reservation_id"""
        )
        told = [id_ for (id_,) in told]
        return booked, told, connection.execute("PRAGMA integrity_check").get
    finally:
        connection.close()
