import re

import pytest

from appliance.core.errors import ChangedMeanwhile, LastOwner, SignInLater
from appliance.staff.accounts import change_role, create_staff, disable_staff
from appliance.staff.audit_log import list_audit_entries
from appliance.staff.model import find_staff
from appliance.staff.sign_in import begin_sign_in
from tests.app.portal.people import PASSWORD, a_person


async def noted(running) -> list[str]:
    found = await running.live.database.read(list_audit_entries, 50)
    return [entry.what for entry in reversed(found)]


async def test_a_new_password_link_keeps_the_old_password_until_it_is_used(running, owner, host):
    _, text, _ = await owner.post(f"/portal/people/{host.id}/link")
    secret = re.search(r"/portal/welcome#([\w-]{43})", text)[1]
    for path in ("/portal", "/portal/"):
        assert (await host.get(path))[2]["Location"] == "/portal/tonight"
    form = {"link": secret, "password": PASSWORD}
    async with running.client.post("/portal/welcome", data=form) as response:
        assert response.status == 200

    assert (await host.get("/portal"))[2]["Location"].startswith("/portal/sign-in")


async def test_a_disabled_person_is_signed_out_immediately_and_can_be_enabled_again(
    running, owner, host
):
    assert (await owner.post(f"/portal/people/{host.id}/disable"))[0] == 303
    assert (await host.get("/portal"))[2]["Location"].startswith("/portal/sign-in")
    assert (await owner.post(f"/portal/people/{host.id}/enable"))[0] == 303

    person = await running.live.database.read(find_staff, host.id)
    assert person.disabled_at is None
    assert (await noted(running))[-2:] == ["person_disabled", "person_enabled"]


async def test_a_changed_role_applies_to_the_next_request(running, owner, host):
    assert (await host.get("/portal/box"))[0] == 403

    await owner.post(f"/portal/people/{host.id}/role", {"seen": "host", "role": "manager"})

    assert (await host.get("/portal/box"))[0] == 200
    seen = {"seen": "host", "role": "door"}
    status, _, _ = await owner.post(f"/portal/people/{host.id}/role", seen)
    assert status == 409
    with pytest.raises(ChangedMeanwhile):
        await running.live.database.write(change_role, host.id, "host", "door")


async def test_the_last_owner_cannot_be_removed(running, owner):
    await running.live.database.write(create_staff, "Invited only", "owner")

    status, _, _ = await owner.post(f"/portal/people/{owner.id}/disable")
    assert status == 409
    with pytest.raises(LastOwner):
        await running.live.database.write(change_role, owner.id, "owner", "host")
    other = await a_person(running, name="Another owner")

    await running.live.database.write(change_role, owner.id, "owner", "host")
    with pytest.raises(LastOwner):
        await running.live.database.write(disable_staff, other.id)


async def test_the_owner_can_reset_failed_sign_ins(running):
    owner, host = await a_person(running), await a_person(running, "host", "Karim")
    for _ in range(5):
        await running.live.database.write(begin_sign_in, "Karim", None)
    with pytest.raises(SignInLater):
        await running.live.database.write(begin_sign_in, "karim", None)

    await owner.post(f"/portal/people/{host.id}/unlock")

    await running.live.database.write(begin_sign_in, "Karim", None)


@pytest.mark.parametrize("path", ["people", "account"])
async def test_a_name_keeps_its_direction_on_a_page_of_the_other_direction(running, path):
    owner = await a_person(running, name="Yasmine B.")

    assert "<bdi>Yasmine B.</bdi></h" in (await owner.get(f"/portal/{path}"))[1]
