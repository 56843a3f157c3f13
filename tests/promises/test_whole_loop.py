"""The whole loop with the real process: book, webhook, scan, restart; all data is kept."""

from tests.journeys.box_process import BoxProcess, found_box
from tests.journeys.partner_side import Receiver, calling


async def test_a_booking_is_told_scanned_and_still_there_after_a_restart(tmp_path):
    founded = found_box(tmp_path)
    async with Receiver().running() as receiver:
        with BoxProcess(founded.data, log=tmp_path / "box.log", settings=receiver.settings) as box:
            async with calling(box, founded, "live") as (partner, door):
                hook = await partner.must(201, "POST", "/v1/webhooks", {"url": receiver.url("a")})
                receiver.secrets["a"] = hook["secret"]
                table = (await partner.must(200, "GET", "/v1/venue"))["tables"][0]
                evening = (await door.must(200, "GET", "/terminal/v1/me"))["evening"]
                wish = {"tableId": table["id"], "date": evening, "guests": 2,
                        "customer": {"name": "Salma", "phone": "+212600000001"},
                        "idempotencyKey": "loop"}  # fmt: skip
                booked = await partner.must(201, "POST", "/v1/reservations", wish)
                id_ = booked["serviceReservationId"]
                await receiver.wait_for("reservation.created", id_)

                async def scan(number):
                    body = {"scanId": f"scan-{number}", "code": booked["guestAccessUrl"]}
                    return await door.must(200, "POST", "/terminal/v1/scans", body)

                first = await scan(1)
                await receiver.wait_for("reservation.checked_in", id_)
                assert box.stop() < 10
                box.start()

                assert await partner.must(200, "POST", "/v1/reservations", wish) == booked
                assert await scan(1) == first
                again = await scan(2)

    assert (first["result"], again["result"]) == ("checked_in", "already_checked_in")
    assert again["firstCheckIn"]["at"] == first["firstCheckIn"]["at"]
    assert all(one.signature_held for one in receiver.received)
    assert box.complaints() == ""
