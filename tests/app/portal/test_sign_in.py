import pytest
from yarl import URL

from appliance.jobs import watchdog
from appliance.jobs.watchdog import DiskReserve
from appliance.staff.sign_in import IDLE_MILLISECONDS
from tests.app.portal.people import FROM_OURS, PASSWORD, an_account
from tests.app.portal.seating import path_of, seat


async def sign_in(running, name="Yasmine", password=PASSWORD, path="/portal/sign-in", **headers):
    async with running.client.post(
        path, data={"name": name, "password": password}, headers={**FROM_OURS, **headers},
        allow_redirects=False,
    ) as response:  # fmt: skip
        cookies = {name: morsel.value for name, morsel in response.cookies.items()}
        return response.status, await response.text(), dict(response.headers), cookies


async def test_the_right_password_starts_a_session_in_two_secure_cookies(running):
    await an_account(running)

    async with running.client.post(
        "/portal/sign-in", data={"name": " yasmine ", "password": PASSWORD}, headers=FROM_OURS,
        allow_redirects=False,
    ) as response:  # fmt: skip
        cookies = response.headers.getall("Set-Cookie")

    assert response.status == 303
    assert response.headers["Location"] == "/portal"
    assert len(cookies) == 2
    for cookie in cookies:
        assert cookie.startswith("__Host-venuebox-")
        for word in ("HttpOnly", "Secure", "SameSite=Lax", "Path=/"):
            assert word in cookie


@pytest.mark.parametrize("typed", ["élodie", " ÉLODIE"])
async def test_names_are_case_insensitive_in_every_script(running, typed):
    await an_account(running, name="Élodie")

    assert (await sign_in(running, name=typed))[0] == 303


async def test_a_session_token_is_stored_hashed_and_changes_at_each_sign_in(running):
    await an_account(running)

    name = running.cookie("session")
    first = (await sign_in(running))[3][name]
    second = (await sign_in(running, Cookie=f"{name}={first}"))[3][name]

    assert first != second
    hashes = await running.live.database.read(
        lambda tx: [h for (h,) in tx.rows("SELECT hash FROM session")]
    )
    assert len(hashes) == 2
    assert first.encode() not in hashes


async def test_two_boxes_on_one_host_do_not_sign_each_other_out(running):
    await an_account(running)
    first, second = [
        set((await sign_in(running, Host=f"127.0.0.1:{port}"))[3]) for port in (8600, 8601)
    ]
    assert len(first) == len(second) == 2
    assert not first & second


async def test_a_device_cookie_is_kept_only_if_the_box_issued_it(running):
    await an_account(running)
    name = running.cookie("device")

    issued = (await sign_in(running, Cookie=f"{name}=attackers-choice"))[3][name]

    assert issued != "attackers-choice"
    assert (await sign_in(running, Cookie=f"{name}={issued}"))[3][name] == issued


@pytest.mark.parametrize(("name", "password"), [("Yasmine", "wrong one"), ("Nobody", PASSWORD)])
async def test_a_wrong_name_and_a_wrong_password_get_the_same_answer(running, name, password):
    await an_account(running)
    status, _, _, cookies = await sign_in(running, name, password)
    assert status == 401
    assert cookies == {}


async def test_after_five_wrong_passwords_even_the_right_one_must_wait(running):
    await an_account(running)
    for _ in range(5):
        assert (await sign_in(running, password="wrong one"))[0] == 401

    status, _, headers, _ = await sign_in(running)
    assert status == 429
    assert "Retry-After" in headers

    running.clock.advance(31)
    assert (await sign_in(running))[0] == 303


async def test_failed_sign_ins_from_other_browsers_do_not_lock_out_the_owners_browser(running):
    await an_account(running)
    name = running.cookie("device")
    known = f"{name}={(await sign_in(running))[3][name]}"
    for _ in range(6):
        await sign_in(running, password="wrong one")

    assert (await sign_in(running))[0] == 429
    assert (await sign_in(running, Cookie=known))[0] == 303


async def test_on_a_full_disk_staff_can_sign_in_and_see_why_changes_are_refused(
    running, tmp_path, monkeypatch
):
    await an_account(running)
    monkeypatch.setattr(watchdog, "_LOOK_SECONDS", 3600)
    reserve = DiskReserve(tmp_path)
    assert reserve.make()
    assert reserve.release()
    reserve.start(each.database for each in running.box.environments)

    status, _, _, cookies = await sign_in(running)

    assert running.live.database.is_full
    assert (status, len(cookies)) == (303, 2)
    cookie = "; ".join(f"{name}={value}" for name, value in cookies.items())
    path, headers = "/portal/sign-out", {**FROM_OURS, "Cookie": cookie}
    async with running.client.post(
        path, data={"once": ""}, headers=headers, allow_redirects=False
    ) as response:
        assert (response.status, running.live.database.is_full) == (303, True)
    await reserve.close()


@pytest.mark.parametrize(
    ("wanted", "target"),
    [("/portal/venue?x=1", "/portal/venue?x=1"), ("/test/portal/tonight", "/test/portal/tonight"),
     ("https://evil.example/portal", "/portal"), ("//evil.example/portal", "/portal"),
     ("/\\evil.example", "/portal"), ("/v1/venue", "/portal"), ("/portal/../access/x", "/portal")],
)  # fmt: skip
async def test_the_page_opened_after_signing_in_is_always_within_the_portal(
    running, wanted, target
):
    await an_account(running)
    path = str(URL("/portal/sign-in").with_query({"next": wanted}))
    _, _, headers, _ = await sign_in(running, path=path)
    assert headers["Location"] == target


async def test_a_session_expires(running, owner):
    assert (await owner.get("/portal"))[2]["Location"] == "/portal/tonight"
    running.clock.advance(IDLE_MILLISECONDS / 1000)
    assert (await owner.get("/portal"))[2]["Location"] == "/portal/sign-in?next=/portal"


async def test_using_a_session_extends_it_to_a_week_at_most(running, owner):
    for _ in range(16):
        assert (await owner.get("/portal"))[2]["Location"] == "/portal/tonight"
        running.clock.advance(10 * 3600)
    running.clock.advance(10 * 3600)
    assert (await owner.get("/portal"))[2]["Location"].startswith("/portal/sign-in")


async def test_signing_out_ends_the_session_and_confirms_it(owner):
    status, _, headers = await owner.post("/portal/sign-out")
    assert (status, headers["Location"]) == (303, "/portal/sign-in?note=signed-out")
    assert (await owner.get("/portal"))[2]["Location"].startswith("/portal/sign-in")


async def test_a_form_submitted_after_the_session_ended_is_reported_as_not_saved(owner):
    await owner.post("/portal/sign-out")

    place = (await owner.post("/portal/venue/slots", {"start": "20:00"}))[2]["Location"]

    assert "was not saved" in (await owner.get(place))[1]
    place = (await owner.post("/portal/venue/rules"))[2]["Location"]
    assert "next=/portal/venue/rules&" in place
    assert "was not saved" not in (await owner.get("/portal/sign-in?next=/portal/venue/slots"))[1]
    assert "not-saved" not in (await owner.post("/portal/sign-out"))[2]["Location"]


async def test_a_fragment_request_after_the_session_ended_reloads_the_whole_page(running):
    path = path_of(await seat(running))
    headers = {"HX-Request": "true"}
    async with running.client.get(f"{path}?part=1", headers=headers) as response:
        assert response.status == 401
        assert response.headers["HX-Redirect"] == f"/portal/sign-in?next={path}"


async def test_after_signing_in_the_page_of_the_requested_fragment_is_shown(running):
    page = "/portal/reservations/new?date=2026-11-22"
    headers = {"HX-Request": "true", "HX-Current-URL": f"http://box{page}"}
    part = "/portal/reservations/callers?customer_phone=0612345678"
    async with running.client.get(part, headers=headers) as response:
        place = URL(response.headers["HX-Redirect"])
        assert dict(place.query) == {"next": page}


async def test_a_person_sees_the_portal_in_the_chosen_language(running, owner):
    await owner.post("/portal/language?next=/portal", {"language": "ar"})
    assert (
        await running.live.database.read(lambda tx: tx.value("SELECT language FROM staff"))
    ) == "ar"
