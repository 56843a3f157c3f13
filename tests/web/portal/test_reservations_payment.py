"""Requests that are answered, and money that is taken down."""

import asyncio

import pytest

from tests.web.portal.people import a_person
from tests.web.portal.seating import as_it_is, path_of, rows, seat


@pytest.fixture
async def host(running):
    return await a_person(running, "host", "Yasmine")


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


async def test_a_payment_typed_wrong_is_voided_with_a_reason_and_the_right_one_recorded(
    running, host
):
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


async def test_an_unusual_amount_is_asked_for_again_and_the_answer_is_about_that_amount(
    running, host
):
    salma = await seat(running, status="pending")
    form = {"seen": salma.version, "amount": "99999999", "method": "cash", "complete": "1"}

    status, page, _ = await host.post(path_of(salma, "payment"), form)
    assert status == 409
    assert 'name="sure" value="99999999"' in page
    assert 'name="reason" maxlength="200"' not in page  # that is asked of who is let in
    other = form | {"sure": "99999999", "amount": "88888888"}
    assert (await host.post(path_of(salma, "payment"), other))[0] == 409
    assert await rows(running, "SELECT 1 FROM payment") == []

    assert (await host.post(path_of(salma, "payment"), form | {"sure": "99999999"}))[0] == 303
    assert await rows(running, "SELECT amount FROM payment") == [(99999999,)]


async def test_nobody_at_the_door_voids_a_payment(running):
    door, salma = await a_person(running, "door"), await seat(running, status="pending")

    assert (await door.post(path_of(salma, "void"), {"seen": salma.version}))[0] == 403
