"""`POST /v1/webhooks/test` over HTTP: contract section 2.8, decisions.md Webhooks."""

import pytest

from tests.appliance.webhooks.receivers import Receiver, a_server
from tests.conftest import Running, with_settings
from tests.web.api.webhook_calls import UNKNOWN, registered


@pytest.fixture
def settings():
    return with_settings(
        api={"rate_limit_per_minute": 1000},
        webhooks={"allow_networks": ("127.0.0.0/8",)},
    )


class TestTestEvents:
    """`POST /v1/webhooks/test`."""

    async def try_out(self, running: Running, **kwargs):
        return await running.call("POST", "/test/v1/webhooks/test", **kwargs)

    @pytest.mark.proves("decision: Where does a webhook.test go?")
    async def test_with_none_active_nothing_is_queued(self, running: Running):
        status, body, _ = await self.try_out(running)

        assert (status, body) == (202, {"queued": 0, "deliveryIds": []})

    @pytest.mark.proves(
        "decision: Where does a webhook.test go?", "interface 4: POST /v1/webhooks/test"
    )
    async def test_without_a_body_every_active_endpoint_receives_it(self, running: Running):
        receiver = Receiver()
        async with a_server(receiver.converse) as receiver.port:
            for path in ("a", "b", "c"):
                url = f"http://127.0.0.1:{receiver.port}/{path}"
                endpoint = await registered(
                    running, "/test", url=url, events=["reservation.declined"]
                )
            await running.call("DELETE", f"/test/v1/webhooks/{endpoint['id']}")

            status, body, _ = await self.try_out(running)
            requests = await receiver.got(2)

        assert status == 202
        assert body["queued"] == len(body["deliveryIds"]) == 2
        assert {r.id for r in requests} == set(body["deliveryIds"])
        assert {r.line.split()[1] for r in requests} == {"/a", "/b"}
        assert {r.headers["x-service-event"] for r in requests} == {"webhook.test"}

    @pytest.mark.proves("decision: Where does a webhook.test go?")
    async def test_one_endpoint_alone_receives_it(self, running: Running):
        receiver = Receiver()
        async with a_server(receiver.converse) as receiver.port:
            url = f"http://127.0.0.1:{receiver.port}/"
            await registered(running, "/test", url=url + "a")
            chosen = await registered(running, "/test", url=url + "b")

            status, body, _ = await self.try_out(running, json={"endpointId": chosen["id"]})
            [request] = await receiver.got(1)

        assert (status, body["queued"]) == (202, 1)
        assert body["deliveryIds"] == [request.id]
        assert request.line.split()[1] == "/b"

    async def test_an_inactive_endpoint_is_known_and_receives_nothing(self, running: Running):
        endpoint = await registered(running, "/test")
        await running.call("DELETE", f"/test/v1/webhooks/{endpoint['id']}")

        status, body, _ = await self.try_out(running, json={"endpointId": endpoint["id"]})

        assert (status, body) == (202, {"queued": 0, "deliveryIds": []})

    @pytest.mark.proves("decision: Where does a webhook.test go?")
    @pytest.mark.parametrize("endpoint_id", [UNKNOWN, "nonsense", ""])
    async def test_an_unknown_endpoint_is_not_found(self, running: Running, endpoint_id):
        status, body, _ = await self.try_out(running, json={"endpointId": endpoint_id})

        assert (status, body["code"]) == (404, "NOT_FOUND")

    @pytest.mark.parametrize("endpoint_id", [1, True, [], {}])
    async def test_an_endpoint_id_is_a_text(self, running: Running, endpoint_id):
        status, body, _ = await self.try_out(running, json={"endpointId": endpoint_id})

        assert (status, body["code"], body["field"]) == (400, "VALIDATION_ERROR", "endpointId")

    @pytest.mark.parametrize("body", [b"[]", b"null", b"{", b"nonsense"])
    async def test_a_body_that_is_there_is_an_object(self, running: Running, body):
        status, answer, _ = await self.try_out(running, data=body)

        assert (status, answer["code"]) == (400, "INVALID_JSON")

    async def test_a_null_endpoint_id_counts_as_absent(self, running: Running):
        status, _, _ = await self.try_out(running, json={"endpointId": None})

        assert status == 202
