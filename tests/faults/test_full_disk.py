"""A full disk: the door goes on from the reserve, the rest is refused, and all of it recovers."""

import asyncio
import time
import uuid

import pytest

from tests.faults.small_disk import Filler, on_small_disk, unshare
from tests.journeys.box_process import BoxProcess, found_box
from tests.journeys.partner_side import calling

TABLES = 20

if unshare() is not None:  # elsewhere the tests of the reserve itself have to do

    @pytest.mark.proves("G7")
    @pytest.mark.parametrize("megabytes", [64, 6])
    async def test_with_a_full_disk_guests_are_checked_in_and_bookings_wait(tmp_path, megabytes):
        founded = found_box(tmp_path, TABLES)
        small = tmp_path / "small"
        small.mkdir()
        wrapper = on_small_disk(small, founded.data, megabytes)
        box = BoxProcess(small, log=tmp_path / "box.log", wrapper=wrapper)
        with box:
            async with calling(box, founded, "live") as (partner, door):
                tables = (await partner.must(200, "GET", "/v1/venue"))["tables"]
                evening = (await door.must(200, "GET", "/terminal/v1/me"))["evening"]

                def body(number):
                    return {"tableId": tables[number]["id"], "date": evening, "guests": 2,
                            "customer": {"name": "Salma", "phone": "+212600000001"},
                            "idempotencyKey": f"b{number}"}  # fmt: skip

                made = [
                    await partner.must(201, "POST", "/v1/reservations", body(number))
                    for number in range(TABLES - 1)
                ]
                filler = Filler(box.pid, small)
                assert (await partner("GET", "/health"))[0] == 200
                await asyncio.to_thread(filler.fill)

                status, answer = await partner("POST", "/v1/reservations", body(TABLES - 1))
                assert (status, answer["code"]) == (503, "UNAVAILABLE")
                assert (await partner("GET", "/health"))[0] == 503
                for one in made:
                    scan = {"scanId": str(uuid.uuid4()), "code": one["accessCode"]}
                    verdict = await door.must(200, "POST", "/terminal/v1/scans", scan)
                    assert verdict["result"] == "checked_in"
                assert (await partner("GET", "/health"))[0] == 503
                assert (await partner("GET", "/v1/venue"))[0] == 200

                await asyncio.to_thread(filler.free)
                deadline = time.monotonic() + 60
                while (await partner("POST", "/v1/reservations", body(TABLES - 1)))[0] == 503:
                    assert time.monotonic() < deadline, "it did not recover by itself"
                    await asyncio.sleep(0.2)
            assert await asyncio.to_thread(box.stop) < 10
