"""A booking whose letter's fate cannot be written down is granted all the same."""

import pytest

from appliance.actions.reserve import settle_email
from appliance.errors import Unavailable
from tests.builders import a_body
from tests.conftest import Running


async def test_a_booking_that_was_committed_is_never_answered_as_not_recorded(
    running: Running, monkeypatch: pytest.MonkeyPatch
):
    database, body = running.live.database, a_body(customer={"name": "S", "email": "s@a.example"})
    write = database.write

    async def fill_up(action, *args, **keywords):
        if action is settle_email:
            raise Unavailable
        return await write(action, *args, **keywords)

    with monkeypatch.context() as full_disk:
        full_disk.setattr(database, "write", fill_up)
        status, answer, _ = await running.call("POST", "/v1/reservations", json=body)
    replayed = await running.call("POST", "/v1/reservations", json=body)

    assert (status, answer["notifications"]["email"]) == (201, "failed")
    assert replayed[:2] == (200, answer)
