"""Two guests and a partner want the last table."""

import asyncio

import pytest

from tests.builders import a_body, table_id
from tests.conftest import with_settings
from tests.web.guest.booking_form import a_form, send, token_of


@pytest.fixture
def settings():
    return with_settings(
        booking={"enabled": True, "hourly_for_address": 1000, "hourly": 1000},
        webhooks={"clock_grace_minutes": 0},
    )


@pytest.mark.proves("V2")
@pytest.mark.parametrize("turn", range(4))
async def test_one_wins_and_the_others_hear_what_is_still_free(running, turn):
    running.clock.set("2026-11-21T12:00:00Z")
    for number in ("T2", "T3", "T4", "T5"):
        body = a_body(tableId=table_id(number), idempotencyKey=number)
        assert (await running.call("POST", "/v1/reservations", json=body))[0] == 201
    world = running  # it has a clock, which is all that a form wants of a world
    tokens = [await token_of(world, running.client) for _ in range(2)]
    last = table_id("T1")
    wishes = [
        lambda: send(running.client, a_form(tokens[0], **{"table-19:30": last})),
        lambda: send(running.client, a_form(tokens[1], **{"table-19:30": ""})),
        lambda: running.call("POST", "/v1/reservations", json=a_body(idempotencyKey="last")),
    ]
    order = wishes[turn % 3 :] + wishes[: turn % 3]

    outcomes = await asyncio.gather(*(wish() for wish in order))

    won, lost = 0, 0
    for outcome in outcomes:
        if isinstance(outcome, tuple):
            status, body, _ = outcome
            won, lost = won + (status == 201), lost + (status == 409)
            assert status == 201 or body["code"] == "TABLE_TAKEN"
        else:
            won, lost = won + (outcome.status == 303), lost + (outcome.status == 409)
            assert outcome.status == 303 or "Encore libre" in await outcome.text()
    assert (won, lost) == (1, 2)
    held = await running.live.database.read(
        lambda reader: reader.value(
            "SELECT count(*) FROM reservation WHERE table_id = :id", {"id": last}
        )
    )
    assert held == 1
