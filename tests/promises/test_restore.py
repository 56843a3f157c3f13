"""Restore a box from a backup: on a blank machine, or in place of a damaged box.

The commands are taken from the printed recovery kit and run by a shell. The restored box gives
partners the same answers in both environments, admits guests by their old codes, and is trusted
by the phones that trusted the old box.
"""

import asyncio
import html
import json
import re
import shlex
import shutil
import subprocess
import uuid
from contextlib import closing

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from appliance.backup.catalogue import parse_name
from appliance.backup.recovery_key import find_recovery_key
from appliance.clock import SystemClock, newest_zone_database
from appliance.core.data_directory import DataDirectory
from appliance.core.tokens import Keyring
from appliance.database.connection import Reader, open_connection
from appliance.database.migrate import PAGE_BYTES
from appliance.door.guest_pass import pass_text
from appliance.reservations.rows import get_reservation
from appliance.staff.audit_log import list_audit_entries
from appliance.tls.authority import Names
from appliance.tls.certificates import (
    AUTHORITY,
    IMPORTED,
    LEAF,
    Certificates,
    import_certificate,
    read_identity,
)
from tests.journeys.box_process import (
    ENVIRONMENTS,
    PROGRAM,
    STOP_SECONDS,
    BoxProcess,
    clean_environ,
    found_box,
    venuebox,
)
from tests.journeys.partner_side import calling
from tests.unit.tls.test_importing import NOW, a_certificate, pem_of

pytestmark = [pytest.mark.slow, pytest.mark.process]


def print_kit(data):
    """Print the recovery kit; return the rows of the key, and the commands."""
    page = data.with_name("kit.html")
    venuebox("backup", "kit", "--html", str(page), data=data)
    shown = html.unescape(re.sub("<[^>]+>", "\n", page.read_text("utf-8"))).splitlines()
    lines = list(dict.fromkeys(map(str.strip, shown)))  # in three languages
    rows = [line for line in lines if re.fullmatch(r"[0-9A-Z]{4} .*|AGE-[-0-9A-Z]*", line)]
    commands = [line for line in lines if line.startswith("sudo ./venuebox ")]
    assert (len(rows), len(commands)) == (3, 2)
    return rows, commands


def typed(line, data):
    """Return a command of the kit, with the paths of this machine."""
    line = line.replace("FILE", '"$FILE"').replace("/srv/venuebox", shlex.quote(str(data)))
    return line.replace("sudo ./venuebox", f"exec {shlex.quote(str(PROGRAM))}")


async def book(partner, door, environment):
    """Book two evenings and cancel one; return requests and answers."""
    venue = await partner.must(200, "GET", "/v1/venue")
    evening = (await door.must(200, "GET", "/terminal/v1/me"))["evening"]
    wishes = [
        {"tableId": table["id"], "date": evening, "guests": 2, "externalRef": f"r-{table['name']}",
         "customer": {"name": "Salma", "phone": "+212600000001"}, "notifyCustomer": False,
         "idempotencyKey": f"{environment}-{table['name']}"}
        for table in venue["tables"][:2]
    ]  # fmt: skip
    made = [await partner.must(201, "POST", "/v1/reservations", wish) for wish in wishes]
    gone = made[1]["serviceReservationId"]
    await partner.must(200, "DELETE", f"/v1/reservations/{gone}")
    return wishes, made, evening


async def ask_everything(partner, booked):
    """Return the answers to all partner calls, including replays."""
    wishes, made, evening = booked
    paths = ["/v1/venue", "/v1/reservations", "/v1/webhooks", f"/v1/availability?date={evening}"]
    answers = {path: await partner.must(200, "GET", path) for path in paths}
    for wish, one in zip(wishes, made, strict=True):
        answered = await partner.must(200, "POST", "/v1/reservations", wish)
        assert answered == one, "links and code as they were sent"
        answers[wish["idempotencyKey"]] = answered
    return json.dumps(answers, sort_keys=True)


def codes(data, environment):
    """Return the guests' QR codes by reservation."""
    connection = open_connection(data / f"{environment}.db", writable=False)
    try:
        reader = Reader(connection, SystemClock(), newest_zone_database())
        keyring = Keyring(DataDirectory(data).master_key(), environment)
        ids = [id_ for (id_,) in reader.rows("SELECT id FROM reservation")]
        return {
            id_: pass_text(reader, keyring, environment, get_reservation(reader, id_))
            for id_ in ids
        }
    finally:
        connection.close()


async def scan(door, code):
    body = {"scanId": str(uuid.uuid4()), "code": code}
    return (await door.must(200, "POST", "/terminal/v1/scans", body))["result"]


async def test_following_the_recovery_kit_restores_the_same_box(tmp_path):
    founded = found_box(tmp_path)
    box = BoxProcess(founded.data, log=tmp_path / "box.log")
    booked, before, sent = {}, {}, {}
    with box:
        for environment in ENVIRONMENTS:
            async with calling(box, founded, environment) as (partner, door):
                booked[environment] = await book(partner, door, environment)
                before[environment] = await ask_everything(partner, booked[environment])
                sent[environment] = codes(founded.data, environment)
        kit, volume = print_kit(founded.data), tmp_path / "usb"
        volume.mkdir()
        venuebox("backup", "--to", str(volume), data=founded.data)
        box.stop()
    shutil.rmtree(founded.data)

    (rows, (restore, install)), [backup] = kit, volume.glob("*.tar.age")
    await asyncio.to_thread(
        subprocess.run, ["sh", "-c", typed(restore, founded.data)], check=True,
        input="\n".join(rows) + "\n", text=True, env=clean_environ({"FILE": str(backup)}),
    )  # fmt: skip
    serve = typed(install.replace("service install", "serve"), founded.data)
    serve += f" --host 127.0.0.1 --port {box.port}"
    box.wrapper = ("sh", "-c", serve)
    with box:
        for environment in ENVIRONMENTS:
            async with calling(box, founded, environment) as (partner, door):
                assert await ask_everything(partner, booked[environment]) == before[environment]
                kept, gone = (one["serviceReservationId"] for one in booked[environment][1])
                assert await scan(door, sent[environment][kept]) == "checked_in"
                assert await scan(door, sent[environment][gone]) != "checked_in"
        box.stop()


def back_up(data):
    """Make a backup; return it and its recovery key."""
    venuebox("backup", data=data)
    [backup] = (data / "backups").iterdir()
    return backup, recovery_key(data)


def recovery_key(data):
    return find_recovery_key(DataDirectory(data)).text


def make_certificates(data):
    """Create the certificates that are missing, as the box does when it starts."""
    names = Names(("riad-atlas.local",), ())
    Certificates(
        data / "tls", SystemClock(), lambda: "Riad", lambda: names, lambda: False
    ).prepare()


def test_phones_that_trusted_the_old_box_trust_the_restored_one(tmp_path):
    founded = found_box(tmp_path)
    key, blank = rsa.generate_private_key(65537, 2048), tmp_path / "blank"
    make_certificates(founded.data)
    import_certificate(founded.data / "tls", a_certificate(key), pem_of(key), NOW)
    files = {name: (founded.data / "tls" / name).read_bytes() for name in (AUTHORITY, IMPORTED)}
    for passing in ("runtime/python.so", "tmp/half", "log/venuebox.log"):
        file = founded.data / passing
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(b"passing")
    backup, key = back_up(founded.data)

    venuebox("restore", str(backup), "--key", key, data=blank)

    for name, content in files.items():
        assert (blank / "tls" / name).read_bytes() == content
        assert (blank / "tls" / name).stat().st_mode & 0o777 == 0o600
    found = {path.name for path in blank.rglob("*")}
    assert not found & {"python.so", "half", "venuebox.log"}
    make_certificates(blank)
    assert (blank / "tls" / AUTHORITY).read_bytes() == files[AUTHORITY], "phones trust it anew"
    leaf, authority = (read_identity(blank / "tls" / name) for name in (LEAF, AUTHORITY))
    leaf.certificate.verify_directly_issued_by(authority.certificate)


def test_a_damaged_box_does_not_serve_and_is_replaced_by_the_latest_backup(tmp_path):
    founded = found_box(tmp_path)
    backup, _ = back_up(founded.data)
    made_at = parse_name(backup.name).made
    path = founded.data / "live.db"
    with path.open("r+b") as file:
        file.seek(PAGE_BYTES * 3)
        file.write(bytes(PAGE_BYTES))
    hurt = path.read_bytes()
    with pytest.raises(AssertionError, match=r"venuebox restore --latest"):
        BoxProcess(founded.data, log=tmp_path / "box.log").start()

    venuebox("restore", "--latest", data=founded.data)

    [aside] = founded.data.glob("damaged-*")
    assert (aside / "live.db").read_bytes() == hurt
    with BoxProcess(founded.data, log=tmp_path / "again.log") as box:
        assert box.stop() < STOP_SECONDS
    [restored] = restored_at(founded.data)
    assert restored[:19].replace(":", "") == made_at


def restored_at(data):
    """Return the time of the backup that the box was restored from, by its audit log."""
    with closing(open_connection(data / "live.db", writable=False)) as connection:
        lines = list_audit_entries(Reader(connection, SystemClock(), newest_zone_database()), 9)
    return [line.detail["made_at"] for line in lines if line.what == "restored"]
