"""What staff do with one reservation, through the forms of its page."""

import asyncio

import pytest

from tests.builders import table_id
from tests.web.portal.people import a_person
from tests.web.portal.seating import as_it_is, path_of, rows, seat, value_of


@pytest.fixture
async def host(running):
    return await a_person(running, "host", "Yasmine")


def an_amendment(reservation, **changes):
    return {
        "seen": reservation.version,
        "customer_name": reservation.customer_name,
        "customer_phone": reservation.customer_phone or "",
        "customer_email": reservation.customer_email or "",
        "guests": reservation.guests,
        "notes": reservation.notes or "",
        **changes,
    }


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


async def test_a_check_in_by_hand_counts_who_came_and_names_who_did_it(running, host):
    salma = await seat(running, guests=4)
    _, page, _ = await host.get(path_of(salma))

    status, _, headers = await host.post(
        path_of(salma, "check-in"), {"token": value_of(page, "token"), "arrivals": "3"}
    )

    assert (status, headers["Location"]) == (303, f"{path_of(salma)}?note=saved")
    assert (await as_it_is(running, salma)).arrived == 3
    assert "3 guests came in · Yasmine" in (await host.get(path_of(salma)))[1]
    [(staff_id, admitted)] = await rows(running, "SELECT staff_id, admitted FROM scan")
    assert (staff_id, admitted) == (host.id, 3)


async def test_a_check_in_form_that_is_sent_twice_counts_once(running, host):
    salma = await seat(running, guests=4)
    form = {"token": "a-token-of-the-page", "arrivals": "2"}

    await asyncio.gather(*(host.post(path_of(salma, "check-in"), form) for _ in range(5)))

    assert (await as_it_is(running, salma)).arrived == 2


async def test_amber_asks_for_a_reason_and_the_reason_stands_in_the_door_log(running, host):
    salma = await seat(running, status="pending")

    status, page, _ = await host.post(path_of(salma, "check-in"), {"arrivals": "1"})
    assert status == 409
    assert "Let in all the same, because" in page
    assert value_of(page, "arrivals") == "1"
    assert (await as_it_is(running, salma)).arrived == 0

    status, _, _ = await host.post(
        path_of(salma, "check-in"),
        {"token": value_of(page, "token"), "arrivals": "1", "reason": "pays inside"},
    )
    assert status == 303
    assert (await as_it_is(running, salma)).arrived == 1
    assert ("pays inside", 1) in await rows(running, "SELECT reason, admitted FROM scan")


async def test_more_than_the_party_needs_a_reason_too(running, host):
    salma = await seat(running, arrived=2, checked_in_at=running.clock.now())
    assert "Let more people in" in (await host.get(path_of(salma)))[1]

    await host.post(path_of(salma, "check-in"), {"arrivals": "1", "reason": "a cousin"})

    assert (await as_it_is(running, salma)).arrived == 3


async def test_a_check_in_is_taken_back_with_a_reason_and_only_once(running, host):
    salma = await seat(running)
    await host.post(path_of(salma, "check-in"), {"arrivals": "2"})
    _, page, _ = await host.get(path_of(salma))
    seen = value_of(page, "seen")

    status, page, _ = await host.post(path_of(salma, "undo"), {"seen": seen, "reason": " "})
    assert (status, "Please write why" in page) == (400, True)
    status, _, _ = await host.post(path_of(salma, "undo"), {"seen": seen, "reason": "wrong party"})
    assert status == 303
    assert (await as_it_is(running, salma)).arrived == 0
    status, _, _ = await host.post(path_of(salma, "undo"), {"seen": seen, "reason": "again"})
    assert status == 409
    now = (await as_it_is(running, salma)).version
    status, page, _ = await host.post(path_of(salma, "undo"), {"seen": now, "reason": "again"})
    assert (status, "there is nothing to take back" in page) == (409, True)


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


async def test_two_hosts_who_edit_the_same_reservation_lose_nothing(running, host):
    salma = await seat(running)
    other = await a_person(running, "host", "Karim")
    await other.post(path_of(salma, "amend"), an_amendment(salma, notes="near the music"))

    status, page, _ = await host.post(
        path_of(salma, "amend"), an_amendment(salma, guests=3, notes="gluten free")
    )

    assert status == 409
    assert "Somebody else has just changed this. Nothing was overwritten" in page
    assert value_of(page, "guests") == "3"
    assert ">gluten free</textarea>" in page
    assert "Now: near the music" in page
    assert (await as_it_is(running, salma)).notes == "near the music"

    again = an_amendment(salma, guests=3, notes="near the music, gluten free")
    status, _, _ = await host.post(
        path_of(salma, "amend"), again | {"seen": value_of(page, "seen")}
    )
    now = await as_it_is(running, salma)
    assert (status, now.guests, now.notes) == (303, 3, "near the music, gluten free")


async def test_a_host_who_does_not_know_that_the_guests_came_in_cancels_nothing(running, host):
    salma = await seat(running)
    await (await a_person(running, "door")).post(path_of(salma, "check-in"), {"arrivals": "2"})

    status, page, _ = await host.post(path_of(salma, "cancel"), {"seen": salma.version})

    assert status == 409
    assert "2/2 arrived" in page
    assert (await as_it_is(running, salma)).status == "confirmed"


async def test_ten_hosts_act_on_one_evening_at_once_and_no_update_is_lost(running):
    hosts = [await a_person(running, "host", f"Host {n}") for n in range(10)]
    salma = await seat(running, notes="")

    async def add_a_note(person, n):
        """As a person does it: look, add one's line, send; when declined, look again."""
        for _ in range(200):
            seen = await as_it_is(running, salma)
            notes = f"{seen.notes or ''}{n};"
            form = an_amendment(seen, notes=notes, guests=seen.guests)
            status, _, _ = await person.post(path_of(salma, "amend"), form)
            if status == 303:
                return
            assert status == 409
        raise AssertionError(n)

    await asyncio.gather(*(add_a_note(person, n) for n, person in enumerate(hosts)))

    now = await as_it_is(running, salma)
    assert sorted(now.notes.strip(";").split(";")) == [str(n) for n in range(10)]
    assert now.version == salma.version + 10
    assert len(await rows(running, "SELECT 1 FROM history WHERE what = 'amended'")) == 10


async def test_ten_hosts_want_the_same_free_table_and_one_gets_it(running):
    hosts = [await a_person(running, "host", f"Host {n}") for n in range(10)]
    parties = [
        await seat(running, date="2026-11-22", table=f"T{n % 5 + 1}", access_code=None,
                   slot=("19:30", "22:00")[n // 5])
        for n in range(10)
    ]  # fmt: skip
    early = parties[:5]
    forms = [{"seen": party.version, "table": table_id("T6")} for party in early]

    answers = await asyncio.gather(
        *(
            hosts[n].post(path_of(early[n % 5], "move"), forms[n % 5])
            for n in range(10)
        )
    )  # fmt: skip

    assert sorted(status for status, _, _ in answers) == [303] + [409] * 9
    tables = [(await as_it_is(running, party)).table_id for party in early]
    assert tables.count(table_id("T6")) == 1
    assert len(set(tables)) == 5


@pytest.mark.parametrize(("what", "status"), [("accept", "confirmed"), ("decline", "declined")])
async def test_a_request_is_answered_once(running, host, what, status):
    salma = await seat(running, status="requested")

    answers = await asyncio.gather(
        *(host.post(path_of(salma, what), {"seen": salma.version}) for _ in range(4))
    )

    assert sorted(code for code, _, _ in answers) == [303, 409, 409, 409]
    assert (await as_it_is(running, salma)).status == status
    assert [row[0] for row in await rows(running, "SELECT type FROM event")] == [
        f"reservation.{status}"
    ]
    now = await as_it_is(running, salma)
    code, page, _ = await host.post(path_of(salma, what), {"seen": now.version})
    assert (code, "This is not possible any more" in page) == (409, True)


async def test_payments_add_up_and_the_full_one_confirms(running, host):
    salma = await seat(running, status="pending")

    await host.post(
        path_of(salma, "payment"), {"seen": salma.version, "amount": "200", "method": "cash"}
    )
    now = await as_it_is(running, salma)
    assert now.status == "partial"
    await host.post(
        path_of(salma, "payment"),
        {"seen": now.version, "amount": "300", "method": "card", "complete": "1"},
    )

    assert (await as_it_is(running, salma)).status == "confirmed"
    _, page, _ = await host.get(path_of(salma))
    assert "<b>500 MAD</b> received" in page
    assert "minimum spend of this table: 500 MAD" in page
    assert "200 MAD · Cash · Yasmine" in page
    assert "300 MAD · Card · Yasmine" in page
    assert "Payment of 300 MAD received · Yasmine" in page


async def test_a_payment_that_is_sent_twice_is_received_once(running, host):
    salma = await seat(running, status="pending")
    form = {"seen": salma.version, "amount": "200", "method": "cash"}

    await asyncio.gather(*(host.post(path_of(salma, "payment"), form) for _ in range(5)))

    assert await rows(running, "SELECT amount FROM payment") == [(200,)]


@pytest.mark.parametrize("amount", ["", "0", "-5", "12.50", "1e9", "９", str(10**10)])
async def test_an_amount_that_is_none_is_declined_and_kept(running, host, amount):
    salma = await seat(running, status="pending")

    status, page, _ = await host.post(
        path_of(salma, "payment"), {"seen": salma.version, "amount": amount, "method": "transfer"}
    )

    assert (status, "Please write the amount as a whole number" in page) == (400, True)
    assert 'value="transfer" selected' in page
    assert await rows(running, "SELECT 1 FROM payment") == []


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


async def test_the_door_checks_in_and_sees_no_more_than_a_terminal_does(running):
    door = await a_person(running, "door")
    salma = await seat(running, notes="Near the window")

    _, page, _ = await door.get(path_of(salma))
    for hidden in ("Idrissi", "+212", "salma@example.com", "History", "Payments", "/amend",
                   "/cancel", "/move"):  # fmt: skip
        assert hidden not in page
    for shown in ("Salma", "T1", "SVC-2345", "2 guests", "Near the window"):
        assert shown in page

    assert (await door.post(path_of(salma, "check-in"), {"arrivals": "2"}))[0] == 303
    assert (await door.post(path_of(salma, "cancel"), {"seen": 2}))[0] == 403
    status, page, _ = await door.post(path_of(salma, "undo"), {"reason": ""})
    assert status == 400
    assert "Idrissi" not in page


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
