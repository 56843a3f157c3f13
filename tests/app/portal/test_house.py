"""The venue is notified of what guests do: by email, according to its rules, and on the board."""

from dataclasses import replace
from datetime import date
from types import SimpleNamespace

import pytest

from appliance.checks.check import Check
from appliance.core.errors import InvalidSlot
from appliance.email.rendering import Composer, read_contents
from appliance.reservations.change import cancel
from appliance.reservations.create import enter_for_guest
from appliance.reservations.email_queue import Outcome, find_email_outcomes
from tests.app.portal.people import a_person
from tests.app.portal.seating import rows, seat, value_of
from tests.builders import TONIGHT, a_booking
from web.guest.booking_form import read_offer
from web.monitoring import Examiner

RULES = "/portal/venue/rules"
EMAILS = "SELECT kind, recipient FROM email WHERE kind GLOB 'house_*'"
HOUSE = "maison@example.com"
TYPED = ("seen", "name", "slug", "time_zone", "currency", "request_expiry_hours", "evening_ends_at",
         "cancel_hours", "reminder_hours", "early_minutes", "contact_days",
         "payment_hours")  # fmt: skip


async def set_rules(running, **rules):
    changes = ", ".join(f"{name} = :{name}" for name in rules)
    sql = f"UPDATE venue SET {changes}"  # noqa: S608
    await running.live.database.write(lambda tx: tx.execute(sql, rules))


async def book(running, **changes):
    return await running.live.database.write(enter_for_guest, a_booking(**changes), notify=True)


async def kinds(running):
    return {kind for kind, recipient in await rows(running, EMAILS) if recipient == HOUSE}


async def test_the_venue_is_emailed_about_requests_cancellations_and_payments(running):
    await set_rules(running, house_email=HOUSE, auto_confirm=0)
    salma = await book(running)
    await running.live.database.write(cancel, salma.id, actor="guest")
    await set_rules(running, reservation_mode="prepaid")
    await book(running, table_id=salma.table_id)

    assert await kinds(running) == {"house_request", "house_cancelled", "house_payment"}


@pytest.mark.parametrize("rule", [{"hears_requests": 0}, {"house_email": None}])
async def test_the_venue_is_emailed_only_about_the_chosen_events(running, rule):
    await set_rules(running, **{"house_email": HOUSE, "auto_confirm": 0, **rule})
    await book(running)
    assert await kinds(running) == set()


async def test_the_venue_is_not_emailed_about_cancellations_by_staff(running, host):
    await set_rules(running, house_email=HOUSE)
    salma = await seat(running)
    await running.live.database.write(cancel, salma.id, actor=f"staff:{host.id}")
    assert await kinds(running) == set()
    assert "data-news=" not in (await host.get("/portal/tonight"))[1]


async def test_an_email_to_the_venue_links_to_the_portal_and_contains_no_guest_link(running):
    await set_rules(running, house_email=HOUSE, auto_confirm=0)
    salma = await book(running)
    [(email_id,)] = await rows(running, "SELECT id FROM email WHERE kind = 'house_request'")

    contents = await running.live.database.read(read_contents, running.live, email_id)
    letter = Composer("box@example.com").compose(contents)

    plain = letter.get_body(("plain",)).get_content()
    assert f"/portal/reservations/{salma.id}" in plain
    assert "Salma Idrissi" in plain
    assert "/access/" not in plain
    assert "/cancel" not in plain
    assert contents.moot is None


async def test_an_email_to_the_venue_is_not_listed_as_one_to_the_guest(running):
    await set_rules(running, house_email=HOUSE, auto_confirm=0)
    salma = await book(running)  # without an email address
    assert await running.live.database.read(find_email_outcomes, [salma]) == {}


@pytest.mark.parametrize(("minutes", "shown"), [(9, True), (11, False)])
async def test_the_board_shows_guest_cancellations_for_ten_minutes(running, host, minutes, shown):
    salma = await seat(running)
    await running.live.database.write(cancel, salma.id, actor="guest")
    running.clock.advance(minutes * 60)
    _, page, _ = await host.get("/portal/tonight")
    assert (f'data-news="{salma.id}"' in page) == shown


async def test_every_page_shows_the_number_of_open_requests_in_its_navigation(running, host):
    await set_rules(running, auto_confirm=0)
    await book(running)
    _, page, _ = await host.get("/portal/reservations")
    assert 'data-badge aria-hidden="true">1</b>' in page
    door = await a_person(running, "door")
    assert 'data-badge aria-hidden="true" hidden>' in (await door.get("/portal/tonight"))[1]


async def test_the_rules_of_the_venue_are_saved_and_shown(running, manager):
    _, page, _ = await manager.get(RULES)
    form = {name: value_of(page, name) for name in TYPED}
    form |= {"status": "active", "reservation_mode": "free", "house_email": HOUSE,
             "hears_cancellations": "1", "names_at_door": "initial", "slots_only": "1"}  # fmt: skip

    assert (await manager.post(RULES, form))[0] == 303

    sql = """SELECT house_email, hears_requests, hears_cancellations, names_at_door, slots_only
             FROM venue"""
    assert await rows(running, sql) == [(HOUSE, 0, 1, "initial", 1)]
    _, page, _ = await manager.get(RULES)
    assert 'value="initial" selected' in page


@pytest.mark.parametrize(("field", "value"), [("house_email", "maison@"), ("names_at_door", "all")])
async def test_an_invalid_rule_is_reported_at_its_field(manager, field, value):
    _, page, _ = await manager.get(RULES)
    form = {name: value_of(page, name) for name in TYPED}
    form |= {"status": "active", "reservation_mode": "free"}
    status, page, _ = await manager.post(RULES, {**form, field: value})
    assert (status, f'id="refused-{field}"' in page) == (400, True)


@pytest.mark.parametrize(
    ("rule", "name", "shown"),
    [("given", "M. Rachid Ouazzani", "Rachid"), ("initial", "M. Rachid Ouazzani", "Rachid O."),
     ("initial", "Abd el Kader Tazi", "Abd el Kader T."), ("initial", "Prince", "Prince"),
     ("whole", "M. Rachid Ouazzani", "M. Rachid Ouazzani")],
)  # fmt: skip
async def test_the_rules_decide_how_much_of_a_name_door_staff_see(running, rule, name, shown):
    await set_rules(running, names_at_door=rule)
    guest = await seat(running, customer_name=name)
    assert guest.door_name == shown
    door = await a_person(running, "door")
    assert f">{shown}</span>" in (await door.get("/portal/tonight"))[1]


async def test_the_venue_is_emailed_once_about_a_check_that_fails_twice_in_a_row(
    box, clock, monkeypatch
):
    await set_rules(box, house_email=HOUSE)
    shown, sent, outcome = [], [], ["unreachable"]
    examiner = Examiner(box, SimpleNamespace(url="", latest=None))

    async def send(_settings, recipient, *texts):
        sent.append((recipient, texts[-1]))
        return Outcome(outcome[0])

    monkeypatch.setattr("appliance.email.smtp.send_once", send)
    monkeypatch.setattr("web.monitoring._run_checks", lambda *_, **__: shown[-1:])
    good = replace(Check.ok("all is well"), name="backups")
    bad = replace(Check.fail("no backup", "plug the stick in"), name="backups")

    async def look(result):
        """Run the check once and return how many emails it adds."""
        before = len(sent)
        clock.advance(300)
        shown.append(result)
        await examiner.job.run()
        return len(sent) - before

    assert [await look(result) for result in (good, bad, good, bad)] == [0, 0, 0, 0]
    assert await look(bad) == 1  # the mail server rejects the email
    outcome[0] = "accepted"
    assert [await look(bad) for _ in range(3)] == [1, 0, 0]
    assert [await look(result) for result in (good, bad, bad)] == [0, 0, 1]
    assert sent[-1] == (HOUSE, "No backup.\n\nPlug the stick in.")
    await set_rules(box, hears_checks=0)
    assert [await look(result) for result in (good, bad, bad)] == [0, 0, 0]


async def test_guests_cannot_book_a_whole_evening_if_the_rules_forbid_it(running):
    await set_rules(running, slots_only=1)
    with pytest.raises(InvalidSlot):
        await book(running, slot=None)
    offer = await running.live.database.read(read_offer, date.fromisoformat(TONIGHT), 2)
    assert [choice.when for choice in offer.choices] == ["19:30", "22:00"]


async def test_a_guest_who_pays_in_advance_sees_the_amount_and_the_instructions(running):
    how = "https://pay.example/{code}/{amount}"
    await set_rules(running, reservation_mode="prepaid", payment_how=how)
    salma = await book(running, customer_email="salma@example.com")
    link = f"https://pay.example/{salma.access_code}/500"
    token = running.live.keyring.access_token(salma.id, 0)
    async with running.client.get(f"/access/{token}") as answer:
        assert f'href="{link}"' in await answer.text()

    [(email_id,)] = await rows(running, "SELECT id FROM email WHERE kind = 'payment_due'")
    contents = await running.live.database.read(read_contents, running.live, email_id)
    letter = Composer("box@example.com").compose(contents)
    assert link in letter.get_body(("plain",)).get_content()
