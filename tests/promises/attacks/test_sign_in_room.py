"""Failed sign-ins of strangers do not lock out other people."""

from itertools import count

import pytest

from appliance.staff.audit_log import list_audit_entries
from tests.app.portal.people import CHEAP
from tests.app.portal.test_sign_in import PASSWORD, an_account, sign_in
from tests.conftest import running_box, with_settings
from web.portal.guard import PASSWORDS

PROXY = with_settings(server={"trusted_proxies": ("127.0.0.1",)})


@pytest.mark.parametrize(
    ("path", "tries", "unknown"),
    [("/portal/sign-in", 60, 401), ("/portal/welcome", 10, 404), ("/portal/setup", 10, 404)],
)
async def test_failed_sign_ins_through_a_proxy_count_only_for_their_own_client(
    tmp_path, clock, path, tries, unknown
):
    numbers = count()

    async def status(running, address):
        form = {"name": f"Nobody {next(numbers)}", "password": "x", "link": "x"}
        headers = {
            "X-Forwarded-For": address,
            "X-Forwarded-Proto": "https",
            "Sec-Fetch-Site": "same-origin",
        }
        async with running.client.post(path, data=form, headers=headers) as response:
            return response.status

    async with running_box(tmp_path, clock, PROXY) as running:
        running.app[PASSWORDS].cost = CHEAP
        await an_account(running)
        one = [await status(running, "203.0.113.5") for _ in range(tries + 1)]
        # A client with IPv6 has a whole network of addresses, which count as one.
        network = [await status(running, f"2001:db8::{n:x}") for n in range(tries + 1)]
        other = await status(running, "203.0.113.6")

    assert one == network == [unknown] * tries + [429]
    assert other == unknown


async def test_failed_sign_ins_from_the_lan_do_not_lock_out_known_browsers(running):
    await an_account(running)
    name = running.cookie("device")
    known = f"{name}={(await sign_in(running))[3][name]}"
    running.app[PASSWORDS].cost = CHEAP
    guesses = [await sign_in(running, f"Nobody {n}", "wrong one") for n in range(60)]

    stranger = await sign_in(running, password=PASSWORD)
    made_up = await sign_in(running, password=PASSWORD, Cookie=f"{name}=abc")
    mine = await sign_in(running, password=PASSWORD, Cookie=known)

    assert [guess[0] for guess in guesses][-1] == 429
    assert (stranger[0], made_up[0], mine[0]) == (429, 429, 303)


async def test_sign_ins_with_invented_names_do_not_fill_the_audit_log(running, clock):
    await an_account(running)
    running.app[PASSWORDS].cost = CHEAP
    for number in range(30):
        await sign_in(running, f"Nobody {number}", "wrong one")
    clock.advance(61)
    await sign_in(running, "Nobody once more", "wrong one")

    entries = await running.live.database.read(list_audit_entries, 100)

    assert [entry.what for entry in entries].count("sign_in_failed") == 2
