"""Reservations for tests of the board and of what is done with one reservation."""

import re
from typing import Any

from appliance.reservations.model import Reservation
from appliance.reservations.rows import get_reservation
from tests.appliance.arrivals import add_reservation
from tests.conftest import Running


async def seat(running: Running, **changes: Any) -> Reservation:
    """Salma Idrissi, for two at T1 tonight at 19:30, or what is given."""
    given = {"slot": "19:30", "access_code": "SVC-2345", **changes}
    return await running.live.database.write(add_reservation, **given)


async def as_it_is(running: Running, reservation: Reservation) -> Reservation:
    """The same reservation now."""
    return await running.live.database.read(get_reservation, reservation.id)


async def rows(running: Running, sql: str) -> list[tuple[Any, ...]]:
    """What the live database answers."""
    return await running.live.database.read(lambda reader: list(reader.rows(sql)))


def path_of(reservation: Reservation, what: str = "") -> str:
    return f"/portal/reservations/{reservation.id}{what and '/' + what}"


def value_of(page: str, name: str) -> str:
    """What stands in a field of the page."""
    found = re.search(rf'<input[^>]* name="{name}"[^>]*>', page)
    assert found is not None, name
    value = re.search(r' value="([^"]*)"', found[0])
    return value[1] if value else ""


def an_amendment(reservation: Reservation, **changes: Any) -> dict[str, Any]:
    """Its form as it was shown, but for what is typed."""
    return {
        "seen": reservation.version,
        "customer_name": reservation.customer_name,
        "customer_phone": reservation.customer_phone or "",
        "customer_email": reservation.customer_email or "",
        "guests": reservation.guests,
        "notes": reservation.notes or "",
        **changes,
    }
