"""Readers of a box that is really served: they come and go with it."""

import asyncio

import pytest

from tests.journeys.box_process import BoxProcess, found_box
from tests.journeys.partner_side import calling


async def test_a_served_box_reads_and_leaves_at_once_though_somebody_is_connected(tmp_path, port):
    founded = await asyncio.to_thread(found_box, tmp_path)
    (founded.data / "settings.toml").write_text(
        f"""
        [[readers]]
        kind = "tcp"
        port = {port}
        terminal = "T"
        [[readers]]
        kind = "serial"
        device = "/dev/serial/by-id/absent"
        terminal = "T"
        """,
        "utf-8",
    )
    box = BoxProcess(founded.data, log=tmp_path / "box.log")
    try:
        await asyncio.to_thread(box.start)
        async with calling(box, founded, "live") as (partner, door):
            [table, *_] = (await partner.must(200, "GET", "/v1/venue"))["tables"]
            evening = (await door.must(200, "GET", "/terminal/v1/me"))["evening"]
            body = {"tableId": table["id"], "date": evening, "guests": 2, "idempotencyKey": "one",
                    "customer": {"name": "Salma", "phone": "+212 600 000 001"}}  # fmt: skip
            booked = await partner.must(201, "POST", "/v1/reservations", body)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"{booked['guestAccessUrl']}\n".encode())
        line = await asyncio.wait_for(reader.readline(), 60)

        assert line.startswith(b"GREEN checked_in Terrasse_1 1/2 ")
        assert await asyncio.to_thread(box.stop) < 10
        writer.close()
    finally:
        box.kill()
    assert "is not there: plug it in" in box.complaints()
    assert "Traceback" not in box.complaints()


async def test_a_wrong_reader_stops_the_start_with_one_sentence(tmp_path):
    founded = await asyncio.to_thread(found_box, tmp_path)
    (founded.data / "settings.toml").write_text('[[readers]]\nkind = "usb"\n', "utf-8")
    box = BoxProcess(founded.data, log=tmp_path / "box.log")

    with pytest.raises(AssertionError, match=r"readers\[1\].kind is 'usb'"):
        await asyncio.to_thread(box.start)

    assert box.complaints().count("\n") == 1
