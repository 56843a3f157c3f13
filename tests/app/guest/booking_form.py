"""Helpers that fill in and send the booking form as a guest's browser does."""

import re

from tests.builders import TONIGHT, table_id

SAME_ORIGIN = {"Sec-Fetch-Site": "same-origin"}


def cookie_of(answer) -> dict[str, str]:
    """Return the Cookie header that a browser sends after `answer`."""
    return {"Cookie": answer.headers["Set-Cookie"].partition(";")[0]}


async def token_of(world, guest, path="/book") -> str:
    """Return the token of a new form, and advance the clock by the time to fill it in."""
    html = await (await guest.get(path)).text()
    world.clock.advance(20)
    return re.search(r'name="token" value="([^"]+)"', html).group(1)


def a_form(token: str, **changes: str) -> dict[str, str]:
    form = {
        "date": TONIGHT,
        "guests": "2",
        "when": "19:30",
        "table-19:30": table_id("T2"),
        "name": "Youssef El Amrani",
        "email": "youssef@example.org",
        "phone": "",
        "notes": "",
        "website": "",
        "token": token,
        **changes,
    }
    return {name: value for name, value in form.items() if value is not None}


async def send(guest, form: dict[str, str], path="/book", **headers: str):
    return await guest.post(
        path, data=form, headers={**SAME_ORIGIN, **headers}, allow_redirects=False
    )


async def rows(world, sql: str) -> list[tuple]:
    return await world.database.read(lambda reader: list(reader.rows(sql)))


async def reservations(world) -> list[tuple]:
    return await rows(
        world,
        """SELECT t.number, r.slot, r.guests, r.status, r.source, r.customer_name, r.language
           FROM reservation r JOIN venue_table t ON t.id = r.table_id ORDER BY r.seq""",
    )
