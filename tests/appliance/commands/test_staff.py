"""`venuebox staff remove-second-step`: the last way back."""

import pytest

from appliance.actions.second_step import confirm_second_step, offer_second_step
from appliance.clock import SystemClock, newest_zone_database
from appliance.model.totp import totp_code
from appliance.store.session import session
from appliance.tokens import Keyring, Tokens


def add_second_step(box, staff_id):
    keyring = Keyring(bytes(32), "live")
    with session(box.data / "live.db", SystemClock(), Tokens(), newest_zone_database()) as tx:
        secret = offer_second_step(tx, keyring, staff_id)
        confirm_second_step(tx, keyring, staff_id, totp_code(secret, tx.now // 30_000))


@pytest.mark.proves("S7")
def test_a_second_step_is_removed_at_the_box_itself(box):
    created = box.json("staff", "create", "--name", "Yasmine", "--role", "owner")
    add_second_step(box, created["id"])
    [person] = box.json_lines("staff", "list")
    assert person["hasSecondStep"] is True

    assert box("staff", "remove-second-step", "yasmine") == 0
    assert "with the password alone" in box.out

    [person] = box.json_lines("staff", "list")
    assert person["hasSecondStep"] is False
    assert box("staff", "remove-second-step", "Yasmine") == 0
    assert "had no second step" in box.out
    assert "nobody here is called" in box.complaint("staff", "remove-second-step", "Karim")
