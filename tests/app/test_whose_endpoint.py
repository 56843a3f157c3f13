"""Several partners of one venue cannot see each other's endpoints and references (S4)."""

import pytest

from appliance.api_keys import list_keys, rotate_key
from tests.app.portal.people import a_person
from tests.builders import a_body, a_key, table_id
from tests.conftest import Running, with_settings
from tests.contract.calls import registered

SECRET_URL = "https://93.184.216.34/hook?token=s3cret"
WHOSE = "/portal/integrations/endpoints/"


@pytest.fixture
def settings():
    return with_settings(
        api={"rate_limit_per_minute": 1000}, webhooks={"allow_networks": ("127.0.0.0/8",)}
    )


async def listed(running: Running, key: str | None = None, prefix: str = ""):
    status, body, _ = await running.call("GET", f"{prefix}/v1/webhooks", key=key)
    assert status == 200
    return {item["id"]: item for item in body["items"]}


async def test_a_key_sees_only_its_own_endpoints_and_no_secret_urls_of_others(running):
    endpoint = await registered(running, url=SECRET_URL)
    other = await a_key(running.live)

    mine = (await listed(running))[endpoint["id"]]
    theirs = (await listed(running, other))[endpoint["id"]]

    assert (mine["createdByThisKey"], mine["url"]) == (True, SECRET_URL)
    assert (theirs["createdByThisKey"], theirs["url"]) == (False, "https://93.184.216.34/hook")
    assert theirs == {**mine, "createdByThisKey": False, "url": theirs["url"]}


async def test_a_rotated_key_and_its_successor_share_their_endpoints(running):
    before = await registered(running, url=SECRET_URL)
    key_id = running.live.database.peek(list_keys)[0].id
    successor = await running.live.database.write(rotate_key, "live", key_id, ends=False)
    _, after, _ = await running.call(
        "POST", "/v1/webhooks", json={"url": f"{SECRET_URL}2"}, key=successor.key
    )

    for key in (None, successor.key):
        found = await listed(running, key)
        assert [found[one["id"]]["createdByThisKey"] for one in (before, after)] == [True, True]
        assert {item["url"] for item in found.values()} == {SECRET_URL, f"{SECRET_URL}2"}
    path = f"/v1/webhooks/{before['id']}"
    assert (await running.call("DELETE", path, key=successor.key))[0] == 200


async def test_an_endpoint_registered_by_the_venue_belongs_to_no_key(running):
    manager = await a_person(running, "manager")
    form = {"url": SECRET_URL, "event": "reservation.created"}
    await manager.post("/portal/integrations/endpoints", form)
    [found] = (await listed(running)).values()
    assert (found["createdByThisKey"], found["url"]) == (False, "https://93.184.216.34/hook")
    assert (await running.call("DELETE", f"/v1/webhooks/{found['id']}"))[0] == 404
    assert (await listed(running))[found["id"]]["active"]


@pytest.mark.parametrize("prefix", ["", "/test"])
async def test_only_its_own_lineage_and_staff_can_deactivate_an_endpoint(running, prefix):
    environment = running.test if prefix else running.live
    other = await a_key(environment)
    endpoint = await registered(running, prefix)
    path = f"{prefix}/v1/webhooks/{endpoint['id']}"

    for call in (("DELETE", path), ("GET", f"{path}/deliveries"), ("POST", f"{path}/replay")):
        status, body, _ = await running.call(*call, key=other)
        assert (status, body["code"]) == (404, "NOT_FOUND")

    assert (await listed(running, other, prefix))[endpoint["id"]]["active"] is True
    manager = await a_person(running, "manager")
    assert (await manager.post(f"{prefix}{WHOSE}{endpoint['id']}/deactivate"))[0] == 303
    assert (await listed(running, None, prefix))[endpoint["id"]]["active"] is False


async def test_the_venue_can_limit_an_endpoint_to_the_references_of_its_own_lineage(
    running, receiver
):
    other = await a_key(running.test)
    manager = await a_person(running, "manager")
    endpoint = await registered(running, "/test", url=receiver.url)
    path = f"/test{WHOSE}{endpoint['id']}"

    async def book(number, key):
        body = a_body(
            tableId=table_id(f"T{number}"), externalRef=f"ref-{number}", idempotencyKey=f"k{number}"
        )
        status, _, _ = await running.call("POST", "/test/v1/reservations", json=body, key=key)
        assert status == 201

    await manager.post(f"{path}/references", {"references": "own"})
    await book(1, None)
    await book(2, other)
    restricted = {r.reservation.get("externalRef") for r in await receiver.got(2)}
    await manager.post(f"{path}/references", {"references": "all"})
    await book(3, other)
    everything = await receiver.got(3)

    assert restricted == {"ref-1", None}
    assert everything[-1].reservation["externalRef"] == "ref-3"
