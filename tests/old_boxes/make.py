"""Create a box of this version, which every later version must open.

`python -m tests.old_boxes.make` is run for each release that changes what is stored. It writes
VERSION.tar.xz beside this file. The file contains a data directory (an unencrypted backup) and
known.json, with the ids, secrets and answers of the box. A released file is never created again.
People and secrets are invented.
"""

import asyncio
import json
import re
import tarfile
import tempfile
from datetime import date
from pathlib import Path

import pyrage

from appliance.backup.create import Maker
from appliance.backup.recovery_key import find_recovery_key
from appliance.clock import newest_zone_database
from appliance.core.data_directory import DataDirectory
from appliance.core.saved_settings import settings_example
from appliance.core.settings import read_settings
from appliance.door.guest_pass import pass_text
from appliance.door.terminals import issue_terminal
from appliance.environment import own_version
from appliance.jobs.reservation_states import complete_evenings
from appliance.reservations.leave import mark_no_show
from appliance.reservations.payments import record_payment
from appliance.reservations.rows import get_reservation
from tests.app.portal.people import an_account
from tests.builders import TONIGHT, a_body, table_id
from tests.clocks import StoppedClock
from tests.conftest import MASTER_KEY, running_box
from tests.contract.venue import BY, Venue
from tests.waiting import until
from tests.webhooks.receivers import OK, Receiver, a_server, an_answer

FOLDER = Path(__file__).parent
NOW = f"{TONIGHT}T20:00:00Z"
YESTERDAY, TOMORROW = date(2026, 11, 20), date(2026, 11, 22)
QUESTIONS = {  # requests whose answers are stored, and compared when the box is opened
    "/v1/venue": "key",
    "/v1/reservations?limit=100": "key",
    f"/v1/availability?date={TONIGHT}&slot=22:00": "key",
    "/v1/webhooks": "key",
    "/v1/webhooks/{kind}/deliveries": "key",
    "/v1/webhooks/{rude}/deliveries": "key",
    "/test/v1/reservations": "test_key",
    f"/terminal/v1/evening?date={TONIGHT}": "terminal",
}


async def ask(running, known):
    """Return the answers to all questions."""
    found = {}
    for question, key in QUESTIONS.items():
        answer = await running.call("GET", question.format(**known), key=known[key])
        found[question] = list(answer[:2])
    return found


async def fill(running, receiver):
    """Create one of everything that boxes store. Return the ids and answers."""
    venue, write, peek = Venue(running), running.live.database.write, running.live.database.peek
    _, terminal = await write(issue_terminal, "Porte")
    known = {"key": running.live_key, "test_key": running.test_key, "terminal": terminal}

    async def call(path, body=None, method="POST", key=None):
        status, answer, _ = await running.call(method, path, json=body, key=key)
        assert status < 300, (path, answer)
        return answer

    async def book(table, **more):
        body = a_body(tableId=table_id(table), idempotencyKey=table, externalRef=table, **more)
        answer = await call("/v1/reservations", body)
        reservation = peek(get_reservation, answer["serviceReservationId"])
        code = peek(pass_text, running.live.keyring, "live", reservation)
        return body, answer, code

    await venue.staff_book("T1", date=YESTERDAY)
    running.clock.set(NOW)
    await write(complete_evenings)
    await an_account(running)
    for name, event in (("kind", "reservation.created"), ("rude", "reservation.cancelled")):
        made = await call("/v1/webhooks", {"url": f"{receiver.url}/{name}", "events": [event]})
        known |= {name: made["id"], f"{name}_secret": made["secret"]}

    known["wish"], known["booked"], awaited = await book("T1", guests=3)
    group = [table_id("T3")]
    _, party, entered = await book("T2", guests=6, additionalTableIds=group)
    _, dropped, cancelled = await book("T4")
    await call(f"/v1/reservations/{dropped['serviceReservationId']}", method="DELETE")
    _, _, partly = await book("T5", guests=4)
    hold = {"tableIds": group, "date": TONIGHT, "slot": "22:00", "guests": 4}
    known["hold"] = {**hold, **await call("/v1/holds", {**hold, "seconds": 600})}
    await call("/test/v1/reservations", a_body())
    await write(mark_no_show, await venue.staff_book("T4"), actor=BY)
    await venue.guest_requests("T1", date=TOMORROW)
    await venue.decline(await venue.guest_requests("T2", date=TOMORROW))
    await venue.change(reservation_mode="prepaid")
    await venue.guest_books("T3", date=TOMORROW)
    known["paid"] = await venue.guest_books("T4", date=TOMORROW)
    await write(record_payment, known["paid"], amount=150, method="cash", complete=False, actor=BY)
    await venue.change(reservation_mode="free", auto_confirm=1)

    known["scan"] = {"scanId": "1", "code": party["accessCode"]}
    known["verdict"] = await call("/terminal/v1/scans", known["scan"], key=terminal)
    await call("/terminal/v1/scans", {"scanId": "2", "code": partly, "arrivals": 3}, key=terminal)
    await call("/terminal/v1/walk-ins", {"scanId": "3", "arrivals": 2}, key=terminal)
    known["passes"] = {"checked_in": awaited, "already_checked_in": entered,
                       "party_added": partly, "cancelled": cancelled}  # fmt: skip
    new = "SELECT count(*) FROM delivery WHERE state = 'pending' AND kind = 'new'"
    await until(lambda: not peek(lambda reader: reader.value(new)), "an attempt of each delivery")
    return {**known, "answers": await ask(running, known)}


async def make(folder):
    """Create the box in `folder`, and known.json."""
    clock, directory = StoppedClock(f"{YESTERDAY}T20:00:00Z"), DataDirectory(folder / "box")
    directory.make_folders()
    directory.master_key_file.write_bytes(MASTER_KEY)
    directory.master_key_file.chmod(0o600)
    text = re.sub(r"^#(?=\w+ = )", "", settings_example(), flags=re.MULTILINE)  # identified by name
    for name, value in (("allow_networks", '["127.0.0.0/8"]'), ("allow_http", "true")):
        text = re.sub(rf"^{name} = .*$", f"{name} = {value}", text, flags=re.MULTILINE)
    directory.settings_file.write_text(text, "utf-8")
    settings, receiver = read_settings(directory.settings_file, {}), Receiver()

    async def answer(writer, request):
        writer.write(an_answer(500) if "/rude" in request.line else OK)

    receiver.always = answer
    served = running_box(directory.root, clock, settings)
    async with a_server(receiver.converse) as receiver.port, served as running:
        known = await fill(running, receiver)
    backup, _ = Maker(directory, settings, clock, newest_zone_database()).make()
    plain = pyrage.decrypt(backup.read_bytes(), [find_recovery_key(directory).identity])
    (folder / "backup.tar").write_bytes(plain)
    (folder / "known.json").write_text(json.dumps(known, indent=1), "utf-8")


if __name__ == "__main__":
    target = FOLDER / f"{own_version()}.tar.xz"
    with tempfile.TemporaryDirectory() as place, tarfile.open(target, "x:xz") as archive:
        asyncio.run(make(Path(place)))
        for name in ("backup.tar", "known.json"):
            archive.add(Path(place, name), name)
