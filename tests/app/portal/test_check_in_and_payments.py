"""One reservation: answers to requests, payments, check-ins by staff."""

import asyncio

import pytest

from tests.app.portal.people import a_person
from tests.app.portal.seating import as_it_is, path_of, rows, seat, value_of


@pytest.mark.parametrize(("what", "status"), [("accept", "confirmed"), ("decline", "declined")])
async def test_a_request_can_be_answered_only_once(running, host, what, status):
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
    code, _, _ = await host.post(path_of(salma, what), {"seen": now.version})
    assert code == 409


async def test_payments_add_up_once_per_form_and_the_full_amount_confirms(running, host):
    salma = await seat(running, status="pending")
    form = {"seen": salma.version, "amount": "200", "method": "cash"}

    await asyncio.gather(*(host.post(path_of(salma, "payment"), form) for _ in range(5)))
    assert await rows(running, "SELECT amount FROM payment") == [(200,)]
    now = await as_it_is(running, salma)
    assert now.status == "partial"
    await host.post(
        path_of(salma, "payment"),
        {"seen": now.version, "amount": "300", "method": "card", "complete": "1"},
    )

    assert (await as_it_is(running, salma)).status == "confirmed"
    _, page, _ = await host.get(path_of(salma))
    assert "<b>500 MAD</b> received" in page


@pytest.mark.parametrize("amount", ["", "0", "-5", "12.50", "1e9", "９", str(10**10)])
async def test_an_invalid_amount_is_refused_and_stays_in_the_field(running, host, amount):
    salma = await seat(running, status="pending")

    status, page, _ = await host.post(
        path_of(salma, "payment"), {"seen": salma.version, "amount": amount, "method": "transfer"}
    )

    assert status == 400
    assert 'value="transfer" selected' in page
    assert await rows(running, "SELECT 1 FROM payment") == []


async def test_a_payment_can_be_voided_with_a_reason(running, host):
    salma = await seat(running, status="pending")
    form = {"seen": salma.version, "amount": "500", "method": "cash", "complete": "1"}
    await host.post(path_of(salma, "payment"), form)
    [(payment,)] = await rows(running, "SELECT id FROM payment")
    now = await as_it_is(running, salma)
    void = {"seen": now.version, "payment": payment, "reason": ""}

    status, page, _ = await host.post(path_of(salma, "void"), void)
    assert (status, now.status) == (400, "confirmed")
    assert f'value="{payment}" selected' in page

    void["reason"] = "5000 <b>"
    answers = await asyncio.gather(*(host.post(path_of(salma, "void"), void) for _ in range(3)))
    assert sorted(code for code, _, _ in answers) == [303, 409, 409]
    now = await as_it_is(running, salma)
    assert now.status == "pending"
    _, page, _ = await host.get(path_of(salma))
    assert "<s>500 MAD · Cash</s>" in page
    assert "<b>0 MAD</b>" in page
    assert "5000 &lt;b&gt;" in page

    await host.post(path_of(salma, "payment"), form | {"seen": now.version, "amount": "5000"})
    assert (await as_it_is(running, salma)).status == "confirmed"
    assert sorted(await rows(running, "SELECT amount, voided_at IS NULL FROM payment")) == [
        (500, 0), (5000, 1)
    ]  # fmt: skip


async def test_an_unusual_amount_must_be_confirmed_exactly(running, host):
    salma = await seat(running, status="pending")
    form = {"seen": salma.version, "amount": "99999999", "method": "cash", "complete": "1"}

    status, page, _ = await host.post(path_of(salma, "payment"), form)
    assert status == 409
    assert 'name="sure" value="99999999"' in page
    assert 'name="reason" maxlength="200"' not in page  # only an override asks for a reason
    other = form | {"sure": "99999999", "amount": "88888888"}
    assert (await host.post(path_of(salma, "payment"), other))[0] == 409
    assert await rows(running, "SELECT 1 FROM payment") == []

    assert (await host.post(path_of(salma, "payment"), form | {"sure": "99999999"}))[0] == 303
    assert await rows(running, "SELECT amount FROM payment") == [(99999999,)]


async def test_overriding_an_amber_verdict_needs_a_reason_that_appears_in_the_door_log(
    running, host
):
    salma = await seat(running, status="pending")

    status, page, _ = await host.post(path_of(salma, "check-in"), {"arrivals": "1"})
    assert status == 409
    assert value_of(page, "arrivals") == "1"
    assert (await as_it_is(running, salma)).arrived == 0

    status, _, _ = await host.post(
        path_of(salma, "check-in"),
        {"token": value_of(page, "token"), "arrivals": "1", "reason": "pays inside"},
    )
    assert status == 303
    assert (await as_it_is(running, salma)).arrived == 1
    assert ("pays inside", 1) in await rows(running, "SELECT reason, admitted FROM scan_log")


async def test_a_check_in_can_be_undone_once_with_a_reason(running, host):
    salma = await seat(running)
    await host.post(path_of(salma, "check-in"), {"arrivals": "2"})
    _, page, _ = await host.get(path_of(salma))
    seen = value_of(page, "seen")

    status, page, _ = await host.post(path_of(salma, "undo"), {"seen": seen, "reason": " "})
    assert status == 400
    status, _, _ = await host.post(path_of(salma, "undo"), {"seen": seen, "reason": "wrong party"})
    assert status == 303
    assert (await as_it_is(running, salma)).arrived == 0
    status, _, _ = await host.post(path_of(salma, "undo"), {"seen": seen, "reason": "again"})
    assert status == 409
    now = (await as_it_is(running, salma)).version
    status, page, _ = await host.post(path_of(salma, "undo"), {"seen": now, "reason": "again"})
    assert status == 409


async def test_door_staff_can_check_in_and_see_no_more_than_a_terminal(running):
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
