"""Restoring never mixes two boxes, and a damaged box is not served but replaced (F10)."""

from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from appliance.backup.proof import show_header
from appliance.backup.recovery_key import find_recovery_key
from appliance.clock import SystemClock, newest_zone_database
from appliance.data_directory import DataDirectory
from appliance.store.connection import Reader, open_connection
from appliance.store.security_log import list_security_entries
from tests.journeys.box_process import BoxProcess, found_box, venuebox
from tests.journeys.partner_side import calling


def recovery_key(data):
    return find_recovery_key(DataDirectory(data)).text


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


@pytest.mark.proves("S23")
def test_a_damaged_box_is_not_served_and_the_latest_backup_takes_its_place(tmp_path):
    founded = found_box(tmp_path)
    venuebox("backup", data=founded.data)
    [backup] = (founded.data / "backups").iterdir()
    made_at = show_header(backup).made_at
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
    assert restored_at(founded.data) == [made_at]


def restored_at(data):
    """From when a box is, by what its security log says."""
    with closing(open_connection(data / "live.db", writable=False)) as connection:
        lines = list_security_entries(Reader(connection, SystemClock(), newest_zone_database()), 9)
    return [line.detail["made_at"] for line in lines if line.what == "restored"]


@pytest.mark.proves("S26")
def test_verify_says_what_a_backup_is_before_it_asks_for_the_key(tmp_path):
    founded = found_box(tmp_path)
    venuebox("backup", data=founded.data)
    [backup] = (founded.data / "backups").iterdir()

    assert "whole and restorable" in venuebox("verify", str(backup), data=founded.data)
    with pytest.raises(AssertionError, match=r"the recovery key is needed|another recovery key"):
        venuebox("verify", str(backup), data=tmp_path / "nowhere")


async def test_what_was_answered_last_before_a_kill_is_not_lost_without_a_word(tmp_path):
    founded = found_box(tmp_path)
    box = BoxProcess(founded.data, log=tmp_path / "box.log")
    with box:
        async with calling(box, founded, "live") as (partner, _door):
            venue = await partner.must(200, "GET", "/v1/venue")
            day = f"{datetime.now(UTC) + timedelta(days=9):%Y-%m-%d}"
            wish = {"tableId": venue["tables"][0]["id"], "date": day, "guests": 2,
                    "customer": {"name": "Salma", "phone": "+212600000001"},
                    "notifyCustomer": False, "idempotencyKey": "last"}  # fmt: skip
            made = await partner.must(201, "POST", "/v1/reservations", wish)
    log = founded.data / "live.db-wal"
    sound = log.read_bytes()
    frames = int.from_bytes((founded.data / "live.db-watermark").read_bytes()[8:12], "big")
    hurt = bytearray(sound)
    hurt[32 + frames * (24 + 4096) - 2000] ^= 1
    log.write_bytes(bytes(hurt))

    with pytest.raises(AssertionError, match=r"pages that were acknowledged.* restore --latest"):
        BoxProcess(founded.data, log=tmp_path / "refused.log").start()
    assert log.read_bytes() == bytes(hurt)

    log.write_bytes(sound)
    with box:
        async with calling(box, founded, "live") as (partner, _door):
            assert await partner.must(200, "POST", "/v1/reservations", wish) == made
        box.stop()
