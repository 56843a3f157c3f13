"""Reservations for tests of the board and of the reservation's page."""

import re
from typing import Any

from appliance.reservations.model import Reservation
from appliance.reservations.rows import get_reservation
from tests.conftest import Running
from tests.unit.arrivals import add_reservation


async def seat(running: Running, **changes: Any) -> Reservation:
    """Add a reservation: Salma Idrissi, two guests, T1, tonight 19:30, except for `changes`."""
    given = {"slot": "19:30", "access_code": "SVC-2345", **changes}
    return await running.live.database.write(add_reservation, **given)


async def as_it_is(running: Running, reservation: Reservation) -> Reservation:
    """Read the reservation again."""
    return await running.live.database.read(get_reservation, reservation.id)


async def rows(running: Running, sql: str) -> list[tuple[Any, ...]]:
    """Return the rows of `sql` in the live database."""
    return await running.live.database.read(lambda reader: list(reader.rows(sql)))


def path_of(reservation: Reservation, what: str = "") -> str:
    return f"/portal/reservations/{reservation.id}{what and '/' + what}"


def value_of(page: str, name: str) -> str:
    """Return the value of an input on the page."""
    found = re.search(rf'<input[^>]* name="{name}"[^>]*>', page)
    assert found is not None, name
    value = re.search(r' value="([^"]*)"', found[0])
    return value[1] if value else ""


def an_amendment(reservation: Reservation, **changes: Any) -> dict[str, Any]:
    """Return the form with the reservation's values, except for `changes`."""
    return {
        "seen": reservation.version,
        "customer_name": reservation.customer_name,
        "customer_phone": reservation.customer_phone or "",
        "customer_email": reservation.customer_email or "",
        "guests": reservation.guests,
        "notes": reservation.notes or "",
        **changes,
    }
