"""Backup, wipe, restore: the box answers as before and the old QR codes still admit (F10, F32)."""

import json
import shutil

import pytest

from appliance.backup.recovery_key import find_recovery_key
from appliance.clock import SystemClock, newest_zone_database
from appliance.data_directory import DataDirectory
from appliance.store.connection import Reader, open_connection
from appliance.store.guest_passes import pass_text
from appliance.store.reservations import get_reservation
from appliance.tokens import Keyring
from tests.journeys.box_process import BoxProcess, found_box, venuebox
from tests.journeys.partner_side import calling


async def ask_everything(partner):
    """What a partner may read of the box."""
    answers = {}
    for path in ("/v1/venue", "/v1/reservations", "/v1/webhooks"):
        status, body = await partner("GET", path)
        answers[path] = (status, json.dumps(body, sort_keys=True))
    return answers


def recovery_key(data):
    return find_recovery_key(DataDirectory(data)).text


def the_code_of(data):
    """The QR code that the one guest of the box was sent."""
    connection = open_connection(data / "live.db", writable=False)
    try:
        reader = Reader(connection, SystemClock(), newest_zone_database())
        reservation = get_reservation(reader, reader.value("SELECT id FROM reservation"))
        return pass_text(reader, Keyring(DataDirectory(data).master_key(), "live"), "live",
                         reservation)  # fmt: skip
    finally:
        connection.close()


async def test_a_wiped_box_restored_by_its_kit_answers_the_same_and_admits_old_codes(tmp_path):
    founded = found_box(tmp_path)
    box = BoxProcess(founded.data, log=tmp_path / "box.log")
    with box:
        async with calling(box, founded, "live") as (partner, door):
            venue = await partner.must(200, "GET", "/v1/venue")
            evening = (await door.must(200, "GET", "/terminal/v1/me"))["evening"]
            await partner.must(201, "POST", "/v1/reservations", {
                "tableId": venue["tables"][0]["id"], "date": evening,
                "guests": 2, "customer": {"name": "Salma", "phone": "+212600000001"},
                "idempotencyKey": "one"})  # fmt: skip
            before = await ask_everything(partner)
            said = venuebox("backup", data=founded.data)
            assert "restored once and found whole (1 reservations)" in said
        box.stop()
    [backup] = (founded.data / "backups").iterdir()
    backup = backup.rename(tmp_path / backup.name)
    key, old_code = recovery_key(founded.data), the_code_of(founded.data)
    shutil.rmtree(founded.data)

    venuebox("restore", str(backup), "--key", key, data=founded.data)

    with box:
        async with calling(box, founded, "live") as (partner, door):
            assert await ask_everything(partner) == before
            scan = {"scanId": "0190a1b2-0000-7000-8000-000000000001", "code": old_code}
            verdict = await door.must(200, "POST", "/terminal/v1/scans", scan)
            assert verdict["result"] == "checked_in"
        box.stop()


@pytest.mark.parametrize("left", ["live.db-wal", "live.db-shm", "test.db", "secrets/master.key"])
def test_a_backup_is_not_mixed_with_what_is_left_of_another_box(tmp_path, left):
    founded = found_box(tmp_path)
    venuebox("backup", data=founded.data)
    [backup] = (founded.data / "backups").iterdir()
    other = tmp_path / "other"
    (other / left).parent.mkdir(parents=True)
    (other / left).write_bytes(b"stale")

    with pytest.raises(AssertionError, match=r"must not be mixed|already holds a box"):
        venuebox("restore", str(backup), "--key", recovery_key(founded.data), data=other)

    assert (other / left).read_bytes() == b"stale"


def test_a_damaged_box_is_not_served_and_the_latest_backup_takes_its_place(tmp_path):
    founded = found_box(tmp_path)
    venuebox("backup", data=founded.data)
    path = founded.data / "live.db"
    with path.open("r+b") as file:
        file.seek(4096 * 3 + 2000)
        file.write(b"\xff")
    hurt = path.read_bytes()
    with pytest.raises(AssertionError, match=r"venuebox restore --latest"):
        BoxProcess(founded.data, log=tmp_path / "box.log").start()

    said = venuebox("restore", "--latest", data=founded.data)

    assert "What was there is kept in" in said
    [aside] = founded.data.glob("damaged-*")
    assert (aside / "live.db").read_bytes() == hurt
    with BoxProcess(founded.data, log=tmp_path / "again.log") as box:
        assert box.stop() < 10


def test_verify_says_what_a_backup_is_before_it_asks_for_the_key(tmp_path):
    founded = found_box(tmp_path)
    venuebox("backup", data=founded.data)
    [backup] = (founded.data / "backups").iterdir()

    assert "whole and restorable" in venuebox("verify", str(backup), data=founded.data)
    with pytest.raises(AssertionError, match=r"the recovery key is needed|another recovery key"):
        venuebox("verify", str(backup), data=tmp_path / "nowhere")
