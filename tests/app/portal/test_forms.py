"""The portal's forms: errors in place, and the links of the next page."""

import html
import re
from urllib.parse import unquote

import pytest

from tests.app.portal.people import a_person, keeps_settings
from tests.app.portal.seating import value_of
from tests.app.test_principals import a_path
from tests.builders import TONIGHT, table_id
from web.portal.routes import PORTAL_ROUTES

LONG = "x" * 300
MAIL = {"host": "smtp.riad.example", "port": "587", "security": "starttls", "user": "riad",
        "password": "a secret of ours", "sender": "riad@riad.example"}  # fmt: skip
SLOT = {"name": "Late", "start": "22:00", "end": "23:30", "days": "1"}
VENUE = {"name": "Dar Zitoun", "slug": "dar-zitoun", "time_zone": "Africa/Casablanca",
         "currency": "MAD", "names_at_door": "initial",
         "reservation_mode": "prepaid", "status": "active",
         "request_expiry_hours": "24", "evening_ends_at": "06:00", "cancel_hours": "2",
         "reminder_hours": "24", "early_minutes": "120", "contact_days": "30",
         "payment_hours": "0"}  # fmt: skip
TYPED_IN = {"name", "slug", "first", "last", "reason", "time_zone", "currency", "start", "end",
            "host", "port", "user", "sender", "seen"}  # fmt: skip


def said_at(page: str, name: str) -> str:
    """Return the error beside this field, which must be marked invalid and focused."""
    tag = re.search(rf'<(?:input|select|textarea)[^>]*\bname="{name}"[^>]*>', page)[0]
    described = rf'aria-invalid="true" aria-describedby="refused-{name}\b[^"]*" autofocus'
    assert re.search(described, tag), tag
    behind = page[page.index(tag) :]
    return re.search(rf'id="refused-{name}" role="alert">([^<]*)<', behind)[1]


@pytest.mark.parametrize(
    ("path", "form", "field"),
    [("venue/rules", {**VENUE, "name": ""}, "name"),
     ("venue/rules", {**VENUE, "name": LONG}, "name"),
     ("venue/rules", {**VENUE, "slug": "Dar Zitoun"}, "slug"),
     ("venue/rules", {**VENUE, "time_zone": "Morocco time"}, "time_zone"),
     ("venue/rules", {**VENUE, "currency": "dirham"}, "currency"),
     ("venue/rules", {**VENUE, "cancel_hours": "721"}, "cancel_hours"),
     ("venue/rules", {**VENUE, "contact_days": "0"}, "contact_days"),
     ("venue/rules", {**VENUE, "early_minutes": "two"}, "early_minutes"),
     ("venue/rules", {**VENUE, "minimumAge": "old", "dressCode": ""}, "minimumAge"),
     ("venue/slots", {**SLOT, "start": "10 pm"}, "start"),
     ("venue/slots", {**SLOT, "end": SLOT["start"]}, "end"),
     ("venue/slots", {**SLOT, "days": "9"}, "days"),
     ("venue/slots", {key: SLOT[key] for key in ("name", "start", "end")}, "days"),
     ("venue/closings", {"first": "2026-12-26", "last": "2026-12-24", "reason": "x"}, "last"),
     ("venue/closings", {"first": "2020-12-26", "last": "", "reason": "x"}, "first"),
     ("venue/closings", {"first": "2026-12-24", "last": "", "reason": LONG}, "reason"),
     ("door/pair", {"name": "", "role": "scan"}, "name"),
     ("box/mail", {**MAIL, "port": "smtp"}, "port"),
     ("box/mail", {**MAIL, "security": "much"}, "security"),
     ("box/mail", {**MAIL, "sender": ""}, "sender")],
)  # fmt: skip
async def test_an_error_is_shown_beside_its_field(new_box, path, form, field):
    keeps_settings(new_box)
    owner = await a_person(new_box)
    if path == "venue/rules":
        form = {**form, "seen": value_of((await owner.get("/portal/venue/rules"))[1], "seen")}

    send = owner.save if path.startswith("box/") else owner.post
    status, page, _ = await send(f"/portal/{path}", form)

    assert (status, said_at(page, field) != "") == (400, True)
    assert page.count('class="refused"') == 1
    assert '<p class="problem">' not in page
    for name, text in form.items():
        if name in TYPED_IN:
            assert value_of(page, name) == text, name


RESERVATION = {"date": TONIGHT, "slot": "19:30", "guests": "2", "table": table_id("T2"),
               "customer_name": "Karim", "token": "of the page"}  # fmt: skip


@pytest.mark.parametrize(
    ("path", "form", "faults"),
    [("venue/rules", {**VENUE, "name": "", "currency": "DIR", "map_url": "x", "seen": ""}, 3),
     ("venue/rules", {**VENUE, "request_expiry_hours": "x", "address": "a" * 600}, 2),
     ("venue/slots", {"start": "10 pm", "end": "10 pm"}, 3),
     ("venue/slots", {**SLOT, "end": "later", "name": "x" * 101}, 3),
     ("reservations/new", {**RESERVATION, "customer_email": "a@b", "customer_phone": "12",
                           "customer_name": LONG * 2}, 3),
     ("reservations/new", {"token": "of the page", "letter": "1"}, 6)],
)  # fmt: skip
async def test_a_form_shows_all_its_errors_at_once(running, owner, path, form, faults):
    if "seen" in form or path == "venue/rules":
        form = {**form, "seen": value_of((await owner.get(f"/portal/{path}"))[1], "seen")}
    status, page, _ = await owner.post(f"/portal/{path}", form)
    assert (status, page.count('class="refused"')) == (400, faults)
    assert page.count("autofocus") == 1

    status, part, _ = await owner.post(f"/portal/{path}", form, **{"HX-Request": "true"})
    assert (status, part.count('class="problem"') or part.count('class="refused"')) == (400, faults)


async def test_an_error_about_a_person_is_shown_on_their_card(running):
    owner, other = await a_person(running), await a_person(running, "host")
    await a_person(running, "door")

    _, page, _ = await owner.post(f"/portal/people/{owner.id}/disable")
    card = page[page.index(f'aria-labelledby="p-{owner.id}"') :].split("</li>")[0]
    assert '<p class="problem" role="alert"' in card
    assert page.count('class="problem"') == 1
    status, page, _ = await owner.post(
        f"/portal/people/{other.id}/role", {"seen": "host", "role": "king"}
    )

    card = page[page.index(f'aria-labelledby="p-{other.id}"') :].split("</li>")[0]
    assert (status, 'class="problem"' in card) == (400, True)


@pytest.mark.parametrize("path", ["preview", "tables"])
async def test_an_empty_or_too_long_list_of_tables_is_asked_for_again(path, manager):
    status, page, _ = await manager.post(f"/portal/venue/{path}", {"list": "  "})
    assert (status, said_at(page, "list") != "") == (400, True)
    status, page, _ = await manager.post(f"/portal/venue/{path}", {"list": "T" * 50_001})
    assert (status, said_at(page, "list") != "") == (400, True)
    assert "T" * 50_001 in page


ENDS_THE_SESSION = {"/portal/sign-out", "/portal/account/password"}


@pytest.mark.parametrize("environment", ["", "/test"])
async def test_the_language_switch_works_after_every_refused_form(environment, owner):
    met = 0
    for route in PORTAL_ROUTES:
        if route.method == "GET" or route.path in ENDS_THE_SESSION:
            continue
        if environment and route.live_only:
            continue
        _, page, _ = await owner.post(environment + a_path(route.path))
        switch = re.search(r'action="/portal/language\?next=([^"]*)"', page)
        if switch is None:
            continue
        back = unquote(html.unescape(switch[1]))
        met += 1
        status, _, _ = await owner.get(back)
        assert status != 405, (route.path, back)
        assert back.startswith(f"{environment}/portal"), (route.path, back)
    assert met > 20


@pytest.mark.parametrize(
    ("shown", "back"),
    [
        ("/portal/tonight?date=2026-12-31", "/portal/tonight?date=2026-12-31"),
        ("/test/portal/tonight?date=2026-12-31&lang=ar", "/test/portal/tonight?date=2026-12-31"),
        ("/portal/reservations?note=saved&from=&q=%C3%89lo%C3%AFse+%26+%D8%B3&page=2",
         "/portal/reservations?from=&q=%C3%89lo%C3%AFse+%26+%D8%B3&page=2"),
        ("/portal/tonight?note=saved", "/portal/tonight"),
    ],
)  # fmt: skip
async def test_the_language_switch_keeps_the_filters_of_the_page(shown, back, host):
    _, page, _ = await host.get(shown)
    action = html.unescape(re.search(r'action="(/portal/language[^"]*)"', page)[1])
    status, _, headers = await host.post(action, {"language": "fr"})
    assert (status, headers["Location"]) == (303, back)
    _, page, _ = await host.get(back)
    assert '<html lang="fr"' in page
