"""A box without HTTP that changes rows and fills its mirror, as a process that can be killed.

`python -m tests.promises.mirrored_box FOLDER URL SEED CHANGES RATE` changes rows of the mirrored
tables until CHANGES were made, over several runs, at most RATE per second (0: no limit). Then it
copies the waiting changes, writes their lag to `lags`, and exits with status 0.
"""

import asyncio
import json
import random
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

from appliance.clock import SystemClock
from appliance.mirror import carrier, changes
from appliance.mirror.carrier import start_mirror
from tests.builders import table_id
from tests.conftest import opened_box, with_settings

IN_A_COMMIT = 20
STATUSES = ("confirmed", "completed", "cancelled", "pending")


def create(path, seed):
    """Create the box's files, with a new id."""
    draw = random.Random(seed)

    async def make():
        async with opened_box(path, SystemClock(), with_settings()) as box:
            await box.live.database.write(begin, "".join(draw.choices("0123456789abcdef", k=12)))

    path.mkdir()
    asyncio.run(make())


def begin(tx, digits):
    tx.execute("UPDATE venue SET id = :id", {"id": f"00000000-0000-4000-8000-{digits}"})
    tx.execute("CREATE TABLE soak (made INTEGER NOT NULL)")
    tx.execute("INSERT INTO soak VALUES (0)")
    tx.insert(
        "terminal",
        {"id": "00000000-0000-4000-8000-000000000001", "name": "Door", "created_at": tx.now},
    )


def change(tx, draw, times):
    """Change `times` rows and delete one in fifty. The test's own row counts the changes."""
    highest = tx.value("SELECT coalesce(max(seq), 0) FROM reservation")
    for _ in range(times):
        kind = draw.random()
        row = tx.row("SELECT id FROM reservation WHERE seq = :n", {"n": draw.randint(0, highest)})
        if row is None or kind < 0.4:
            highest = tx.insert("reservation", a_row(tx, draw))
        elif kind < 0.6:
            tx.update(
                "reservation", row[0], status=draw.choice(STATUSES), guests=draw.randint(1, 9),
                customer_name=draw.choice([None, "Salma", "محمد", 'O"Neil\\']), updated_at=tx.now,
            )  # fmt: skip
        elif kind < 0.7:
            tx.insert(
                "payment",
                {"id": tx.new_id(), "reservation_id": row[0], "at": tx.now, "method": "cash",
                 "amount": draw.randint(1, 9999)},
            )  # fmt: skip
        elif kind < 0.72:
            tx.execute("DELETE FROM payment WHERE id = (SELECT id FROM payment LIMIT 1)")
        elif kind < 0.74:
            tx.execute("UPDATE slot SET name = :name", {"name": f"Dîner {draw.random()}"})
        else:
            tx.insert(
                "scan_log",
                {"scan_id": tx.new_id(), "terminal_id": "00000000-0000-4000-8000-000000000001",
                 "at": tx.now, "kind": "pass", "reservation_id": row[0], "result": "ok",
                 "admitted": draw.randint(-2, 4), "verdict": "{}"},
            )  # fmt: skip
    tx.execute("UPDATE soak SET made = made + :times", {"times": times})
    tx.notices.append("changed")


def a_row(tx, draw):
    return {
        "id": tx.new_id(), "status": "confirmed", "source": draw.choice(["partner", "manual"]),
        "table_id": table_id(f"T{draw.randint(1, 5)}"), "slot": "19:30", "starts": 1170,
        "date": f"2026-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}", "ends": 1320,
        "guests": draw.randint(1, 6), "customer_name": "Salma Idrissi", "notes": "allergie 🦐",
        "customer_email": f"{draw.random()}@example.com", "language": "fr",
        "pass_id": draw.randbytes(8), "link_expires_at": tx.now, "created_at": tx.now,
        "updated_at": tx.now,
    }  # fmt: skip


async def live(folder, url, seed, wanted, rate, in_a_commit=IN_A_COMMIT):
    settings = with_settings(mirror={"url": url, "contacts": seed % 2 == 0})
    draw = random.Random(f"{seed} {time.time_ns()}")
    async with opened_box(folder, SystemClock(), settings) as box:
        database = box.live.database
        committed, lags = [], []

        async def advance(*arguments, write=database.write, **named):
            result = await write(*arguments, **named)
            if arguments[0] is changes.advance:
                upto, now = arguments[1].position.carried, time.monotonic()
                while committed and committed[0][0] <= upto:
                    lags.append(round(now - committed.pop(0)[1], 3))
            return result

        database.write = advance
        [job] = await start_mirror(database, settings.mirror)
        carrying = asyncio.create_task(keep_carrying(job))
        made = database.peek(lambda reader: reader.value("SELECT made FROM soak"))
        begun, before = time.monotonic(), made
        while made < wanted:
            await database.write(change, draw, min(in_a_commit, wanted - made))
            newest = database.peek(
                lambda reader: reader.value("SELECT max(seq) FROM mirror_change")
            )
            committed.append((newest, time.monotonic()))
            made += min(in_a_commit, wanted - made)
            due = begun + (made - before) / rate if rate else 0
            await asyncio.sleep(max(0, due - time.monotonic()))
        while database.peek(changes.has_work):  # noqa: ASYNC110 - another task carries
            await asyncio.sleep(0.05)
        carrying.cancel()
        with suppress(asyncio.CancelledError):
            await carrying
    told = {"lags": lags}
    (folder / "lags").write_text(json.dumps(told), "utf-8")


async def keep_carrying(job):
    """Fill the mirror like the scheduler does, but without pauses."""
    while True:
        await job.run()
        await asyncio.sleep(0.2)


def main(argv):
    folder, url, seed, wanted, rate = argv
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if not float(rate):
        carrier._PACE_SECONDS = 0.05
    asyncio.run(live(Path(folder), url, int(seed), int(wanted), float(rate)))


if __name__ == "__main__":
    main(sys.argv[1:])
