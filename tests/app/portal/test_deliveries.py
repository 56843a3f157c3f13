"""Delivery pages: show, replay, filter and find deliveries, with a receiver on loopback."""

import asyncio
import re

import pytest

from tests.app.portal.integrations import ROOM, die, eventually, has, register, send_test
from tests.builders import a_body, table_id
from tests.conftest import Running, with_settings
from tests.webhooks.receivers import OK, an_answer


@pytest.fixture
def settings():
    return with_settings(webhooks={"allow_networks": ("127.0.0.0/8",)})


async def test_a_dead_delivery_is_listed_and_replayed_only_once(running, receiver, manager):
    receiver.always = an_answer(500, body=b"<script>no</script>")
    page, _ = await register(manager, receiver.url)
    delivery = await send_test(manager, page)
    (failed,) = await receiver.got(1)
    await eventually(lambda: has(manager, delivery, "Answered with status 500"))
    await die(running)
    _, dead, _ = await manager.get(delivery)

    receiver.always = OK
    first, second = await asyncio.gather(*(manager.post(f"{delivery}/replay") for _ in range(2)))
    await eventually(lambda: has(manager, delivery, "Delivered"))

    assert "X-Service-Signature: " + failed.headers["x-service-signature"] in dead
    assert "&lt;script&gt;no&lt;/script&gt;" in dead
    assert "<script>no" not in dead
    assert {first[2]["Location"], second[2]["Location"]} == {
        f"{delivery}?note=replayed", f"{delivery}?note=replayed-anyway"
    }  # fmt: skip
    assert [r.id for r in receiver.requests] == [failed.id] * 2


async def test_replaying_all_dead_deliveries_twice_queues_them_once(running, receiver, manager):
    receiver.always = an_answer(503)
    page, _ = await register(manager, receiver.url)
    for _ in range(3):
        await send_test(manager, page)
    await receiver.got(3)
    await eventually(lambda: has(manager, page, "<dt>Consecutive failures</dt><dd>3</dd>"))
    await die(running)

    receiver.always = OK
    answers = await asyncio.gather(*(manager.post(f"{page}/replay", {}) for _ in range(2)))
    await receiver.got(6)

    assert [status for status, _, _ in answers] == [303, 303]
    assert len(receiver.requests) == 6
    await eventually(lambda: has(manager, page, "<dt>Given up</dt><dd>0</dd>"))


async def test_the_delivery_log_can_be_filtered_by_endpoint_and_state(running, receiver, manager):
    page, _ = await register(manager, receiver.url, "reservation.created", "webhook.test")
    await running.call("POST", "/test/v1/reservations", json=a_body())
    delivery = await send_test(manager, page)
    await eventually(lambda: has(manager, delivery, "Delivered"))
    endpoint_id = page.rpartition("/")[2]

    async def shown(query: str) -> list[str]:
        _, text, _ = await manager.get(f"{ROOM}/deliveries?{query}")
        return re.findall(r'/deliveries/[0-9a-f-]{36}"><bdi[^>]*>([^<]+)<', text)

    both = ["webhook.test", "reservation.created"]
    assert await shown("") == both
    assert await shown(f"endpoint={endpoint_id}&state=delivered") == both
    assert await shown("state=dead") == []
    newest = delivery.partition("?")[0].rpartition("/")[2]
    assert await shown(f"before={newest}") == ["reservation.created"]
    for wrong in ("state=lost", "endpoint=x"):
        assert (await manager.get(f"{ROOM}/deliveries?{wrong}"))[0] == 400


LOG = "/test/portal/integrations/deliveries"
LINE = re.compile(r'href="/test/portal/integrations/deliveries/([0-9a-f-]{36})"')


@pytest.fixture
async def booked(running: Running):
    """Register an endpoint and create two reservations of a partner. Return the answers."""
    endpoint = {"url": "http://127.0.0.1:9009/hook"}
    assert (await running.call("POST", "/test/v1/webhooks", json=endpoint))[0] == 201
    made = []
    for number in ("T1", "T2"):
        body = a_body(tableId=table_id(number), idempotencyKey=number)
        status, answer, _ = await running.call("POST", "/test/v1/reservations", json=body)
        assert status == 201, answer
        made.append(answer)
    return made


async def all_of(manager):
    return LINE.findall((await manager.get(LOG))[1])


@pytest.mark.parametrize("spelling", ["{code}", "{code_alone}", " {id} ", "{capitals}"])
async def test_the_deliveries_of_a_reservation_are_found_by_its_access_code_and_id(
    manager, booked, spelling
):
    first = booked[0]
    code, id_ = first["accessCode"], first["serviceReservationId"]
    text = spelling.format(code=code, code_alone=code[4:].lower(), id=id_, capitals=id_.upper())

    _, page, _ = await manager.get(f"{LOG}?find={text}")
    (found,) = LINE.findall(page)
    _, story, _ = await manager.get(f"{LOG}/{found}")

    assert len(await all_of(manager)) == 2
    assert f"/reservations/{id_}" in story


async def test_a_delivery_is_found_by_the_id_that_its_receiver_saw(manager, booked):
    delivery_id = (await all_of(manager))[0]
    status, _, headers = await manager.get(f"{LOG}?find={delivery_id}")
    assert status == 303
    assert headers["Location"].partition("?")[0] == f"{LOG}/{delivery_id}"
