"""A journey with a canary in every personal field: the box's log knows none of them."""

import logging

import pytest

from appliance.actions.cancel import cancel
from appliance.actions.erase_guest import erase_guest
from tests.builders import a_body

CANARIES = ("zqxanthe", "wvuillermoz", "canary.example", "699 424 242", "699424242", "zqxsafran")


@pytest.mark.proves("S22")
async def test_no_name_contact_or_note_of_a_guest_is_ever_logged(running, caplog, tmp_path):
    for package in ("appliance", "terminal_bridge", "web"):
        caplog.set_level(logging.DEBUG, logger=package)
    caplog.set_level(logging.WARNING, logger="aiohttp")  # as the box runs: no access log
    body = a_body(
        customer={"name": "Zqxanthe Wvuillermoz", "email": "zqxanthe@canary.example",
                  "phone": "+212 699 424 242"},
        notes="sans zqxsafran",
    )  # fmt: skip

    for prefix in ("", "/test"):
        status, booked, _ = await running.call("POST", f"{prefix}/v1/reservations", json=body)
        assert status == 201
        bad = {**body, "idempotencyKey": "other"}
        assert (await running.call("POST", f"{prefix}/v1/reservations", json=bad))[0] == 409
        wrong = {**body, "guests": 99, "idempotencyKey": "third"}
        assert (await running.call("POST", f"{prefix}/v1/reservations", json=wrong))[0] == 400
        await running.call("POST", f"{prefix}/v1/reservations", data=str(body) + "zqxanthe")
        await running.call("GET", f"{prefix}/v1/reservations?status=zqxanthe@canary.example")
        path = "/access/" + booked["guestAccessUrl"].rpartition("/")[2]
        assert (await running.client.get(prefix + path)).status == 200
        await running.client.get(f"{prefix}/access/zqxanthe@canary.example")
        environment = running.test if prefix else running.live
        id_ = booked["serviceReservationId"]
        await environment.database.write(cancel, id_, actor="staff:1")
        await environment.database.write(erase_guest, id_, actor="staff:1")

    said = caplog.text.lower()
    for folder in (tmp_path / "log", tmp_path):
        said += "".join(p.read_text("utf-8", "replace").lower() for p in folder.glob("*.log"))
    assert [canary for canary in CANARIES if canary in said] == []
