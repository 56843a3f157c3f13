"""A guest is found by the usual typed forms of the name: in the portal, at the door, by a scan."""

from html import escape
from itertools import product
from urllib.parse import quote

from tests.app.portal.door_room import a_terminal
from tests.app.portal.people import a_person
from tests.app.portal.seating import seat

NAMES = [
    ("Lætitia Lebœuf", "laetitia leboeuf"),
    ("M‘hamed Alami", "M'hamed"),
    ("Nʼdiaye Alami", "n’diaye"),
    ("Jean‑Pierre Roux", "Jean-Pierre"),
    ("Anne–Marie Roux", "Anne Marie"),
    ("Łukasz Ødegård", "lukasz odegard"),
    ("Đorđe Þórsson", "dorde thorsson"),
    ("Işıl Straße", "isil strasse"),
    ("الگلاوي", "الكلاوي"),
    ("فاطمة الڭزّار", "فاطمه الكزار"),
    ("ڤيوليت", "فيوليت"),
    ("He\u0301le\u0300ne\u00a0Tazi\u200f", "hélène tazi"),
    ("Ｓａｌｍａ　Ｉｄｒｉｓｓｉ", "salma idrissi"),
]


async def test_every_name_is_found_by_its_usual_typed_forms(running):
    host = await a_person(running, "host")
    _, token = await a_terminal(running, role="search")
    headers = {"Authorization": f"Bearer {token}"}
    places = product(("T1", "T2", "T3", "T4", "T5", "T6"), ("19:30", "22:00", "23:30"))
    for (stored, _), (table, slot) in zip(NAMES, places, strict=False):
        await seat(running, customer_name=stored, access_code=None, table=table, slot=slot)

    for n, (stored, typed) in enumerate(NAMES):
        _, page, _ = await host.get(f"/portal/reservations?q={quote(typed)}")
        async with running.client.get(
            "/terminal/v1/evening", params={"q": typed}, headers=headers
        ) as answer:
            at_the_door = (await answer.json())["items"]
        scan = {"scanId": str(n), "code": typed, "simulate": True}
        async with running.client.post("/terminal/v1/scans", json=scan, headers=headers) as answer:
            verdict = await answer.json()

        others = [other for other, _ in NAMES if other != stored and escape(other) in page]
        assert (escape(stored) in page, others) == (True, []), stored
        assert len(at_the_door) == 1, stored
        assert verdict["result"] != "unknown_code", stored
