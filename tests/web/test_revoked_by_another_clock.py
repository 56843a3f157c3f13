"""A revoked key is refused, whatever the clock said by which it was: commands go by the machine's.

The box may go on by its own time when the machine's clock has leapt (steady_clock.py).
"""

import pytest

from appliance.actions.revoke_key import revoke_key
from appliance.actions.rotate_key import rotate_key
from appliance.clock import StoppedClock
from appliance.store.keys import find_key, list_keys
from appliance.store.session import session


def revoke_beside(running, key_id, instant):
    """`venuebox key revoke` where the machine's clock says so."""
    database, box = running.live.database, running.box
    with session(database.path, StoppedClock(instant), box.tokens, box.zones) as tx:
        assert revoke_key(tx, key_id)
    running.box.look_again()


@pytest.fixture
def key(running):
    """The live partner's."""
    return running.live.database.peek(list_keys)[0]


async def refusal(running):
    status, body, _ = await running.call("GET", "/v1/venue")
    return status, body.get("code")


@pytest.mark.parametrize("instant", ["2027-11-21T19:00:00Z", "2026-11-21T22:00:00Z"])
async def test_a_key_that_is_revoked_by_a_clock_ahead_is_refused_on_the_next_request(
    running, key, instant
):
    revoke_beside(running, key.id, instant)

    assert await refusal(running) == (401, "KEY_REVOKED")


async def test_a_revoked_key_stays_refused_when_the_clock_is_set_back(running, key):
    await running.live.database.write(revoke_key, key.id)

    running.clock.set("2025-11-21T19:00:00Z")

    assert await refusal(running) == (401, "KEY_REVOKED")


async def test_a_key_in_its_last_day_that_is_revoked_by_a_clock_ahead_does_not_live_that_day(
    running, key
):
    await running.live.database.write(rotate_key, "live", key.id, ends=True)
    assert await refusal(running) == (200, None)

    revoke_beside(running, key.id, "2027-11-21T19:00:00Z")

    assert await refusal(running) == (401, "KEY_REVOKED")
    old = running.live.database.peek(find_key, key.id)
    assert old.revoked_at == running.clock.now() + 24 * 3_600_000  # it was to end then anyway
