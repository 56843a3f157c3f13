"""The demo's evening: a partner, its receiver, and guests from all three sources."""

from dataclasses import dataclass
from datetime import date

from appliance.actions.announce import EVENT_TYPES
from appliance.actions.create_staff import create_staff
from appliance.actions.enter import enter_by_staff, enter_for_guest
from appliance.actions.issue_key import IssuedKey, issue_key
from appliance.actions.issue_terminal import issue_terminal
from appliance.actions.offer_pairing import offer_pairing
from appliance.actions.register_endpoint import register_endpoint
from appliance.actions.reserve import reserve
from appliance.box import Box
from appliance.environment import Environment
from appliance.model.booking import Booking
from appliance.model.evening import find_slot, tonight
from appliance.model.guest_terms import has_ended
from appliance.model.reservation import Reservation
from appliance.store.connection import Reader, Transaction
from appliance.store.keys import find_key
from appliance.store.reservations import get_reservation
from appliance.store.venue import get_venue, list_slots, list_tables

FREE_TABLE, FREE_SLOT = "T2", "22:00"


# Who comes: through whom, to which table, when, how many, under which name.
_TONIGHT = {
    "live": (
        ("partner", "T1", "19:30", 3, "Salma Bennani"),
        ("partner", "P1", "22:00", 2, "Youssef El Amrani"),
        ("partner", "S1", None, 8, "Claire Dubois"),
        ("platform", "T3", "19:30", 5, "Nadia Cherkaoui"),
        ("platform", "P2", "22:00", 4, "Omar Tazi"),
        ("manual", "T2", "19:30", 2, "Lalla Zineb Alaoui"),
        ("manual", "P3", "22:00", 6, "Mehdi Berrada"),
    ),
    "test": (
        ("partner", "T1", "19:30", 2, "Sara Essai"),
        ("platform", "P1", "22:00", 2, "Karim Essai"),
        ("manual", "T3", None, 4, "Hind Essai"),
    ),
}


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a stranger is told about one environment."""

    environment: Environment
    key: str
    terminal_token: str
    pairing_link: str
    guest_link: str
    free_table_id: str
    tonight: str


async def prepare_evening(environment: Environment, webhook_url: str | None) -> Prepared:
    """Key, endpoint, terminal and tonight's reservations, each made by the action that is real."""
    database = environment.database
    issued = await database.write(issue_key, environment.name, "Demo partner")
    if webhook_url is not None:
        await database.write(register_endpoint, environment.keyring, webhook_url, EVENT_TYPES)
    _, terminal_token = await database.write(issue_terminal, "Demo door")
    offered = await database.write(offer_pairing, "Demo phone", "override")
    made = [
        await database.write(_come, environment, issued, number, guest)
        for number, guest in enumerate(_TONIGHT[environment.name], 1)
    ]
    tables, day = await database.read(_tables_and_tonight)
    return Prepared(
        environment=environment,
        key=issued.key,
        terminal_token=terminal_token,
        pairing_link=offered.link(environment.links.base),
        guest_link=environment.links.access(environment.keyring.access_token(made[0].id)),
        free_table_id=tables[FREE_TABLE],
        tonight=day.isoformat(),
    )


async def invite_owner(box: Box) -> str:
    """The one-time link on which the demo's owner sets a password."""
    invitation = await box.live.database.write(create_staff, "Yasmine", "owner")
    return f"{box.live.links.base}/portal/welcome#{invitation.secret}"


def _come(
    tx: Transaction,
    environment: Environment,
    issued: IssuedKey,
    number: int,
    guest: tuple[str, str, str | None, int, str],
) -> Reservation:
    source, table, slot, guests, name = guest
    tables, day = _tables_and_tonight(tx)
    writes_letter = environment.name == "test" and source == "partner"
    booking = Booking(
        table_id=tables[table],
        date=day,
        slot=slot if source == "manual" else _still_bookable(tx, slot, day),
        guests=guests,
        customer_name=name,
        # Only the test environment keeps letters: the outbox has one to show.
        customer_email="sara@example.com" if writes_letter else None,
        customer_phone=f"+212 600 000 {number:03d}",
        external_ref=f"DEMO-{number}" if source == "partner" else None,
        idempotency_key=f"demo-evening-{number}" if source == "partner" else None,
        notify_customer=writes_letter,
    )
    if source == "platform":
        return enter_for_guest(tx, booking)
    if source == "manual":
        return enter_by_staff(tx, booking, actor="box")
    key = find_key(tx, issued.id)
    assert key is not None  # noqa: S101 - it was issued a moment ago
    granted = reserve(tx, environment.name, key, booking)
    return get_reservation(tx, granted.issued.reservation_id)


def _still_bookable(reader: Reader, start: str | None, day: date) -> str | None:
    """That slot, or the whole evening when the demo starts after its end."""
    venue = get_venue(reader)
    slot = find_slot(list_slots(reader), start, day) if start else None
    ended = has_ended(slot, day, venue, reader.zones.zone(venue.time_zone), reader.now)
    return None if ended else start


def _tables_and_tonight(reader: Reader) -> tuple[dict[str, str], date]:
    venue = get_venue(reader)
    zone = reader.zones.zone(venue.time_zone)
    tables = {table.number: table.id for table in list_tables(reader)}
    return tables, tonight(reader.now, zone, venue.evening_ends_at)
