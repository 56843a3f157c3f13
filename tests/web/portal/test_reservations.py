"""What staff do with one reservation, through the forms of its page."""

import pytest

from appliance.store.guest_passes import pass_text
from tests.builders import table_id
from tests.web.portal.door_room import a_terminal, scan
from tests.web.portal.people import a_person
from tests.web.portal.seating import an_amendment, as_it_is, path_of, rows, seat, value_of


@pytest.fixture
async def host(running):
    return await a_person(running, "host", "Yasmine")


async def test_the_page_of_a_reservation_tells_everything_about_it(running, host):
    salma = await seat(running, source="partner", notes="Gâteau à 23 h")

    status, page, _ = await host.get(path_of(salma))

    assert status == 200
    for told in ("Salma Idrissi", "T1", "Confirmed", "2 guests", "SVC-2345", "From a partner",
                 "+212 600 123 457", "salma@example.com", "Gâteau à 23 h", "History"):  # fmt: skip
        assert told in page


async def test_the_drawer_is_a_part_of_a_page(running, host):
    salma = await seat(running)

    _, part, _ = await host.get(path_of(salma) + "?part=1")

    assert part.lstrip().startswith("<article")
    assert f'data-version="{salma.version}"' in part


async def test_what_does_not_exist_is_not_found(running, host):
    salma = await seat(running)
    for wrong in ("01890000-0000-7000-8000-000000000000", "x", "..%2f.."):
        assert (await host.get(f"/portal/reservations/{wrong}"))[0] == 404
    assert (await host.post(path_of(salma).replace(salma.id[-4:], "0000") + "/cancel"))[0] == 404


async def test_moving_keeps_the_pass_and_is_told_in_the_history(running, host):
    salma = await seat(running)

    status, _, _ = await host.post(
        path_of(salma, "move"), {"seen": salma.version, "table": table_id("T3")}
    )

    now = await as_it_is(running, salma)
    assert status == 303
    assert (now.table_id, now.pass_id, now.generation) == (
        table_id("T3"), salma.pass_id, salma.generation,
    )  # fmt: skip
    assert "Moved from T1 to T3 · Yasmine" in (await host.get(path_of(salma)))[1]


async def test_a_new_code_replaces_the_old_one_for_this_guest_alone(running, host):
    salma, other = await seat(running), await seat(running, table="T2", access_code=None)
    old, others = await pass_of(running, salma), await pass_of(running, other)
    _, token = await a_terminal(running)
    before = await the_guests_page(running, salma)
    assert f'data-pass="{old}"' in before

    status, _, _ = await host.post(path_of(salma, "new-code"), {"seen": salma.version})
    again, _, _ = await host.post(path_of(salma, "new-code"), {"seen": salma.version})

    assert (status, again) == (303, 409)
    now = await as_it_is(running, salma)
    assert (now.generation, now.access_code) == (salma.generation + 1, salma.access_code)
    new = await pass_of(running, now)
    assert f'data-pass="{new}"' in await the_guests_page(running, salma)
    scans = [await scan(running, token, code, code[-9:]) for code in (old, new, others)]
    assert [verdict["result"] for _, verdict in scans] == ["revoked", "checked_in", "checked_in"]
    logged = await rows(running, "SELECT what, actor FROM security_log ORDER BY seq DESC LIMIT 1")
    assert logged == [("pass_reissued", f"staff:{host.id}")]
    history = "SELECT reservation_id FROM history WHERE what = 'pass_reissued'"
    assert await rows(running, history) == [(salma.id,)]


async def pass_of(running, reservation):
    return await running.live.database.read(pass_text, running.live.keyring, "live", reservation)


async def the_guests_page(running, reservation):
    token = running.live.keyring.access_token(reservation.id)
    async with running.client.get(f"/access/{token}") as response:
        return await response.text()


async def test_only_free_tables_are_offered_and_a_taken_one_is_refused_beside_the_form(
    running, host
):
    salma = await seat(running)
    await seat(running, table="T2", access_code=None)

    _, page, _ = await host.get(path_of(salma))
    assert table_id("T3") in page
    assert table_id("T2") not in page

    status, page, _ = await host.post(
        path_of(salma, "move"), {"seen": salma.version, "table": table_id("T2")}
    )
    assert status == 409
    assert "This table is already taken then." in page
    assert "<details open><summary>Move to another table" in page
    status, page, _ = await host.post(path_of(salma, "move"), {"seen": salma.version, "table": "?"})
    assert "Please choose a table." in page


async def test_guests_contact_and_notes_are_corrected(running, host):
    salma = await seat(running)
    form = an_amendment(salma, guests=4, customer_phone="+212 611 222 333", notes="VIP", vip="1")

    status, _, _ = await host.post(path_of(salma, "amend"), form)

    now = await as_it_is(running, salma)
    assert status == 303
    assert (now.guests, now.customer_phone, now.notes, now.vip) == (4, "+212 611 222 333", "VIP", 1)
    assert "Guests: 2 → 4 · Yasmine" in (await host.get(path_of(salma)))[1]


@pytest.mark.parametrize(
    ("field", "wrong", "sentence"),
    [
        ("guests", "9", "This table seats 1 to 4 guests."),
        ("guests", "two", "Please write how many guests come"),
        ("guests", "-1", "Please write how many guests come"),
        ("customer_name", "  ", "Please write the guest&#39;s name."),
        ("customer_name", "n" * 201, "This name is too long"),
        ("customer_email", "salma@", "email address is malformed"),
        ("customer_phone", "12", "This phone number does not look right"),
        ("notes", "n" * 501, "These notes are too long"),
    ],
)
async def test_what_is_wrong_is_said_beside_the_form_and_what_was_typed_stays(
    running, host, field, wrong, sentence
):
    salma = await seat(running)
    form = an_amendment(salma, customer_name="Salma El Idrissi") | {field: wrong}

    status, page, _ = await host.post(path_of(salma, "amend"), form)

    assert status == 400
    assert sentence in page
    if field == "notes":
        assert wrong in page
    else:
        assert value_of(page, field) == wrong
        assert field == "customer_name" or value_of(page, "customer_name") == "Salma El Idrissi"
    assert (await as_it_is(running, salma)).version == salma.version


async def test_late_and_on_time_after_all(running, host):
    salma = await seat(running)

    await host.post(path_of(salma, "late"), {"seen": salma.version, "late": "1"})
    late = await as_it_is(running, salma)
    _, board, _ = await host.get("/portal/tonight")
    await host.post(path_of(salma, "late"), {"seen": late.version})

    assert late.late_at is not None
    assert "comes late" in board
    assert (await as_it_is(running, salma)).late_at is None


async def test_cancelling_frees_the_table_and_tells_the_partner(running, host):
    salma = await seat(running)

    status, _, _ = await host.post(path_of(salma, "cancel"), {"seen": salma.version})

    assert status == 303
    assert (await as_it_is(running, salma)).status == "cancelled"
    assert await rows(running, "SELECT type FROM event") == [("reservation.cancelled",)]
    assert "Cancelled · Yasmine" in (await host.get(path_of(salma)))[1]


async def test_a_replay_with_another_body_is_a_warning_on_the_reservation(running, host):
    salma = await seat(running, source="partner", body_mismatches=2)

    _, page, _ = await host.get(path_of(salma))

    assert "The partner sent this booking 2 times again with other contents." in page
    assert "again with other" not in (await host.get(path_of(await seat(
        running, table="T2", access_code=None))))[1]  # fmt: skip


async def test_htmx_gets_the_part_with_the_refusal_in_it(running, host):
    salma = await seat(running)

    status, part, headers = await host.post(
        path_of(salma, "amend"), an_amendment(salma, guests=9), **{"HX-Request": "true"}
    )

    assert status == 400
    assert part.lstrip().startswith("<article")
    assert 'role="alert"' in part
    assert "HX-Retarget" not in headers
