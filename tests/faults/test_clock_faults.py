"""A real box with a wrong clock: nothing expires by it, and the door still admits (F12, F13)."""

import shutil
import uuid

import pytest

from tests.journeys.box_process import BoxProcess, found_box
from tests.journeys.partner_side import calling

FAKETIME = shutil.which("faketime")
LIBRARY = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1"


def a_box(founded, folder, shift_file):
    return BoxProcess(
        founded.data,
        log=folder / "box.log",
        settings={
            "LD_PRELOAD": LIBRARY,
            "FAKETIME_TIMESTAMP_FILE": str(shift_file),
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_NO_CACHE": "1",
            "VENUEBOX_WEBHOOKS_CLOCK_GRACE_MINUTES": "10",
        },
    )


if FAKETIME is not None:  # elsewhere tests/appliance/webhooks/test_clock_gate.py has to do

    @pytest.mark.parametrize("shift", ["-56y", "-30d", "+1y"])
    async def test_a_clock_that_is_set_wrong_ends_no_evening_and_a_code_still_admits(
        tmp_path, shift
    ):
        founded, shifted = found_box(tmp_path), tmp_path / "shift"
        shifted.write_text("+0")
        with a_box(founded, tmp_path, shifted) as box:
            async with calling(box, founded, "live") as (partner, door):
                tables = (await partner.must(200, "GET", "/v1/venue"))["tables"]
                evening = (await door.must(200, "GET", "/terminal/v1/me"))["evening"]
                body = {"tableId": tables[0]["id"], "date": evening, "guests": 2,
                        "customer": {"name": "Salma", "phone": "+212600000001"},
                        "idempotencyKey": "one"}  # fmt: skip
                booked = await partner.must(201, "POST", "/v1/reservations", body)
            box.stop()
            shifted.write_text(shift)
            box.start()
            async with calling(box, founded, "live") as (partner, door):
                [row] = (await partner.must(200, "GET", "/v1/reservations"))["items"]
                assert row["status"] == "confirmed"

                shifted.write_text("+0")
                scan = {"scanId": str(uuid.uuid4()), "code": booked["accessCode"]}
                verdict = await door.must(200, "POST", "/terminal/v1/scans", scan)
                assert verdict["result"] == "checked_in"
                [row] = (await partner.must(200, "GET", "/v1/reservations"))["items"]
                assert row["status"] == "confirmed"
            assert box.stop() < 10
