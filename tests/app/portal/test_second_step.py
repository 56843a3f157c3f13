"""Two-factor sign-in: enable, sign in with a code, disable one's own and another person's."""

import logging
import re

from appliance.staff.audit_log import list_audit_entries
from appliance.staff.two_factor import (
    confirm_two_factor,
    has_two_factor,
    offer_two_factor,
    totp_code,
)
from tests.app.portal.people import FROM_OURS, PASSWORD, a_person, with_password

AT = "/portal/account/second-step"
KEY = re.compile(r'id="app-key">([A-Z2-7 ]+)<')
CODES = re.compile(r"<code>([2-9A-HJ-NP-Z]{4}(?:-[2-9A-HJ-NP-Z]{4}){3})</code>")


def shown(running, secret, beside=0):
    """Return the code that the app shows `beside` time steps from now."""
    return totp_code(secret, running.clock.now() // 30_000 + beside)


async def with_second_step(running, role="owner", name="Yasmine"):
    """Enable two-factor sign-in for a person. Return (person, secret, recovery codes)."""
    person, keyring = await with_password(running, role, name), running.live.keyring
    secret = await running.live.database.write(offer_two_factor, keyring, person.id)
    codes = await running.live.database.write(
        confirm_two_factor, keyring, person.id, shown(running, secret)
    )
    running.clock.advance(120)
    return person, secret, codes


async def send(running, path="/portal/sign-in", headers=FROM_OURS, **form):
    async with running.client.post(
        path, data=form, headers=headers, allow_redirects=False
    ) as response:
        return response.status, await response.text(), response


async def asked(running, name="Yasmine", path="/portal/sign-in"):
    """Sign in with the password. Return the secret in the code form."""
    status, text, response = await send(running, path, name=name, password=PASSWORD)
    assert status == 200
    assert not response.cookies
    assert response.headers["Cache-Control"] == "no-store"
    return re.search(r'name="asked" value="([\w-]{43})"', text)[1]


async def in_force(running, person):
    return await running.live.database.read(has_two_factor, person.id)


async def test_two_step_verification_is_enabled_with_the_password_and_a_valid_code(running):
    person = await with_password(running, "door", "Yasmine")
    assert (await person.post(AT, {"password": "wrong"}))[0] == 400
    status, text, _ = await person.post(AT, {"password": PASSWORD})
    assert (status, "<svg" in text) == (200, True)
    key = KEY.search(text)[1]
    secret = await running.live.database.read(offered, running.live.keyring, person.id)

    status, text, _ = await person.post(f"{AT}/confirm", {"code": "000000"})
    assert status == 400
    assert KEY.search(text)[1] == key
    assert not await in_force(running, person)
    assert f'action="{AT}/remove"' not in (await person.get("/portal/account"))[1]
    form = {"code": shown(running, secret)}
    status, text, headers = await person.post(f"{AT}/confirm", form)

    codes = CODES.findall(text)
    assert (status, len(set(codes)), headers["Cache-Control"]) == (200, 10, "no-store")
    assert await in_force(running, person)
    _, text, _ = await person.get("/portal/account")
    assert not any(code in text for code in codes)
    assert f'action="{AT}/remove"' in text


def offered(reader, keyring, staff_id):
    sql = "SELECT secret FROM two_factor WHERE staff_id = :id"
    return keyring.unwrap(reader.value(sql, {"id": staff_id}))


async def test_no_session_starts_before_a_valid_code_even_in_a_known_browser(running):
    _, secret, _ = await with_second_step(running)
    path = "/portal/sign-in?next=/portal/venue"
    form = await asked(running, path=path)

    status, _, response = await send(running, path, asked=form, code="000000")
    assert (status, len(response.cookies)) == (401, 0)
    status, _, response = await send(running, path, asked=form, code=shown(running, secret))

    assert (status, response.headers["Location"]) == (303, "/portal/venue")
    assert set(response.cookies) == {running.cookie("session"), running.cookie("device")}
    device = response.cookies[running.cookie("device")]
    known = f"{device.key}={device.value}"

    status, text, response = await send(
        running, headers={**FROM_OURS, "Cookie": known}, name="Yasmine", password=PASSWORD
    )

    assert (status, 'name="asked"' in text, len(response.cookies)) == (200, True, 0)


async def test_a_recovery_code_works_with_a_wrong_clock_and_the_form_mentions_the_clock(running):
    _, secret, codes = await with_second_step(running)
    right = shown(running, secret)
    running.clock.milliseconds -= 3 * 3600 * 1000

    _, text, _ = await send(running, name="Yasmine", password=PASSWORD)
    form = re.search(r'name="asked" value="([\w-]{43})"', text)[1]
    assert "16:02" in text
    assert (await send(running, asked=form, code=right))[0] == 401
    assert (await send(running, asked=form, recovery=codes[0]))[0] == 303

    status, _, _ = await send(running, asked=await asked(running), recovery=codes[0])
    assert status == 401


async def test_wrong_codes_are_limited_like_wrong_passwords_without_blocking_others(running):
    await with_second_step(running)
    await with_password(running, "host", "Karim")
    form = await asked(running)
    for _ in range(5):
        assert (await send(running, asked=form, code="000000"))[0] == 401

    status, text, response = await send(running, asked=form, code="000000")

    assert (status, "Retry-After" in response.headers) == (429, True)
    assert 'name="asked"' in text
    assert (await send(running, name="Yasmine", password=PASSWORD))[0] == 429
    assert (await send(running, name="Karim", password=PASSWORD))[0] == 303


async def test_the_owner_can_remove_it_for_a_person_who_lost_the_phone(running):
    owner = await a_person(running, name="Owner")
    host, _, _ = await with_second_step(running, "host", "Karim")
    path = f"/portal/people/{host.id}/second-step/remove"
    assert path in (await owner.get("/portal/people"))[1]
    assert (await host.post(path))[0] == 403
    assert await in_force(running, host)

    assert (await owner.post(path))[0] == 303

    assert not await in_force(running, host)
    assert path not in (await owner.get("/portal/people"))[1]


async def test_the_owner_needs_the_password_to_remove_their_own(running):
    owner, _, _ = await with_second_step(running)
    status, _, _ = await owner.post(f"/portal/people/{owner.id}/second-step/remove")
    assert status == 404
    assert await in_force(running, owner)


async def test_the_logs_contain_no_secrets_or_codes(running, caplog):
    caplog.set_level(logging.DEBUG)
    person = await with_password(running, "owner", "Yasmine")
    _, text, _ = await person.post(AT, {"password": PASSWORD})
    key = KEY.search(text)[1]
    secret = await running.live.database.read(offered, running.live.keyring, person.id)
    _, text, _ = await person.post(f"{AT}/confirm", {"code": shown(running, secret)})
    codes = CODES.findall(text)
    running.clock.advance(60)
    forms = [await asked(running) for _ in range(3)]
    await send(running, asked=forms[0], code="424242")
    await send(running, asked=forms[1], code=shown(running, secret))
    await send(running, asked=forms[2], recovery=codes[0])

    entries = await running.live.database.read(list_audit_entries, 50)
    written = caplog.text + repr(entries)
    assert {"second_step_added", "wrong_code", "recovery_code_used"} <= {e.what for e in entries}
    for word in (key, key.replace(" ", ""), secret.hex(), shown(running, secret), "424242",
                 *codes, *forms):  # fmt: skip
        assert word not in written
