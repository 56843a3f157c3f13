"""`venuebox serve --demo`: a sample venue and evening, and the printed guide."""

import argparse
import json
import shlex
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from datetime import date
from importlib import resources
from pathlib import Path

from appliance.api_keys import IssuedKey, find_key, issue_key
from appliance.box import Box
from appliance.commands.console import Console
from appliance.commands.init import found_box
from appliance.core.data_directory import DataDirectory
from appliance.core.errors import OperatorError
from appliance.core.files import atomic_write
from appliance.core.network import is_loopback_host
from appliance.core.settings import Settings
from appliance.database.connection import Reader, Transaction
from appliance.door.terminals import PAIRING_LIFE_MS, issue_terminal, offer_pairing
from appliance.environment import Environment
from appliance.outbox import EVENT_TYPES
from appliance.reservations.create import enter_by_staff, enter_for_guest, reserve
from appliance.reservations.model import Reservation
from appliance.reservations.request import Booking
from appliance.reservations.rows import get_reservation
from appliance.staff.accounts import create_staff
from appliance.venue.model import find_slot, has_ended, tonight
from appliance.venue.rows import get_venue, list_slots, list_tables
from appliance.venue.venue_file import parse_venue_file
from appliance.webhooks.endpoints import register_endpoint
from web.listeners import listen
from web.serve import serve_directory

FREE_TABLE, FREE_SLOT = "T2", "22:00"


# The sample reservations: channel, table, time, party size, name.
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
    """Values that the guide prints about one environment."""

    environment: Environment
    key: str
    terminal_token: str
    pairing_link: str
    guest_link: str
    free_table_id: str
    tonight: str


async def prepare_evening(environment: Environment, webhook_url: str | None) -> Prepared:
    """Create key, endpoint, terminal and tonight's reservations through the real actions."""
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
    """Return the one-time link with which the demo's owner sets a password."""
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
        # Only the test environment stores emails: its outbox needs one to show.
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
    assert key is not None  # noqa: S101 - it was issued just before
    granted = reserve(tx, environment.name, key, booking)
    return get_reservation(tx, granted.issued.reservation_id)


def _still_bookable(reader: Reader, start: str | None, day: date) -> str | None:
    """Return `start`, or None (whole evening) if the demo starts after the slot's end."""
    venue = get_venue(reader)
    slot = find_slot(list_slots(reader), start, day) if start else None
    ended = has_ended(slot, day, venue, reader.zones.zone(venue.time_zone), reader.now)
    return None if ended else start


def _tables_and_tonight(reader: Reader) -> tuple[dict[str, str], date]:
    venue = get_venue(reader)
    zone = reader.zones.zone(venue.time_zone)
    tables = {table.number: table.id for table in list_tables(reader)}
    return tables, tonight(reader.now, zone, venue.evening_ends_at)


_GUIDE = """\
Riad Atlas is open for the evening of {live.tonight}. This is a demo: it listens on this
machine alone{lifetime}.

1. Book table {table} at {slot} tonight in the test environment, as a partner does:

BOOKING=$(curl -s {test_base}/v1/reservations -H 'Authorization: Bearer {test.key}' \
-H 'Content-Type: application/json' -d '{booking}'); echo "$BOOKING"

2. Open the guest's link: the code to show at the door.

LINK=$(echo "$BOOKING" | grep -o 'http[^"]*/access/[^"]*'); echo "$LINK"

3. Scan the code at the door. Its text stands in the page; the link itself is read as well.

PASS=$(curl -s "$LINK" | grep -o 'data-pass="[^"]*' | cut -d'"' -f2); echo "$PASS"
curl -s {test_base}/terminal/v1/scans -H 'Authorization: Bearer {test.terminal_token}' \
-H 'Content-Type: application/json' -d "{{\\"scanId\\":\\"{scan_id}\\",\\"code\\":\\"$PASS\\"}}"

4. See reservation.created and reservation.checked_in arrive, signed, at an echo receiver:

{watch}

Where to look
  portal              {base}/portal
    sign in           {welcome}
                      (works once: choose a password; you are Yasmine, the owner)
  door, pair a phone  {live.pairing_link}
                      (works once, for {minutes} minutes; the portal makes another)
  a guest's link      {live.guest_link}
  booking page        {base}/book
  guide for partners  {base}/docs
  interface, to try   {test_base}/docs/reference
  sandbox             {test_base}   (paste the test key: watch webhooks arrive)
  live                {base}        key {live.key}
  test                {test_base}   key {test.key}
  scanner, live       terminal token {live.terminal_token}
  scanner, test       terminal token {test.terminal_token}
  echo receiver       {watch}   (as JSON: {receiver})
  letters of test     {test_base}/outbox
  what was sent       {program} deliveries --data {directory} --environment test --json
"""


def make_guide(
    live: Prepared, test: Prepared, *, token: str, welcome: str, directory: Path,
    passing: bool, scan_id: str, program: str,
) -> str:  # fmt: skip
    """Return the guide. Each command is a single line, so that it can be copied."""
    test_base = test.environment.links.base
    booking = {
        "tableId": test.free_table_id,
        "date": test.tonight,
        "slot": FREE_SLOT,
        "guests": 2,
        "customer": {"name": "Amina Idrissi", "phone": "+212 611 111 111"},
        "idempotencyKey": "demo-1",
        "notifyCustomer": False,
    }
    return _GUIDE.format(
        live=live,
        test=test,
        base=live.environment.links.base,
        test_base=test_base,
        lifetime=" and forgets everything when it stops" if passing else "",
        table=FREE_TABLE,
        slot=FREE_SLOT,
        booking=json.dumps(booking),
        scan_id=scan_id,
        program=program,
        welcome=welcome,
        minutes=PAIRING_LIFE_MS // 60_000,
        receiver=f"{test_base}/echo/{token}",
        watch=f"{test_base}#{token}",
        directory=directory,
    )


_ELSEWHERE = "--port, or with make run PORT=8090"
_LOOPBACK = "127.0.0.1"
_LOOPBACK_NETWORKS = ("127.0.0.0/8", "::1")
_MARK = "demo"
_WHOLE_DAY = 24 * 60


def run_demo(arguments: argparse.Namespace, console: Console) -> int:
    """Run `venuebox serve --demo` and return the exit status.

    Each start creates a new evening: in a temporary directory, or in `--data DIR`, which must be
    empty or contain an earlier demo.
    """
    host = arguments.host or _LOOPBACK
    if not is_loopback_host(host):
        raise OperatorError(
            f"the demo listens on this machine alone, not on {host}: leave --host out"
        )
    with _own_directory(arguments, console) as directory:
        settings = console.settings(directory)
        port = settings.server.port if arguments.port is None else arguments.port
        with listen(host, port, _ELSEWHERE) as listener:
            _found(directory, console)

            @asynccontextmanager
            async def beside(box: Box) -> AsyncIterator[None]:
                await _explain(box, directory, passing=arguments.data is None)
                yield

            return serve_directory(
                directory, _demo_settings(settings), console, listener, host=host, beside=beside
            )


async def _explain(box: Box, directory: DataDirectory, *, passing: bool) -> None:
    token = box.test.keyring.echo_token(box.tokens.new_id(box.clock.now()))
    live = await prepare_evening(box.live, None)
    test = await prepare_evening(box.test, f"{box.test.links.base}/echo/{token}")
    guide = make_guide(
        live,
        test,
        token=token,
        welcome=await invite_owner(box),
        directory=directory.root,
        passing=passing,
        scan_id=box.tokens.new_id(box.clock.now()),
        program=_program(),
    )
    print(guide, flush=True)


@contextmanager
def _own_directory(arguments: argparse.Namespace, console: Console) -> Iterator[DataDirectory]:
    """Yield a temporary directory, or the one given with `--data`."""
    if arguments.data is not None:
        yield console.directory(arguments)
        return
    root = Path(tempfile.mkdtemp(prefix="venuebox-demo-"))
    try:
        yield DataDirectory(root)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _found(directory: DataDirectory, console: Console) -> None:
    """Create the demo's box; replaces an earlier demo in the same directory."""
    mark = directory.root / _MARK
    if mark.exists():
        with directory.lock():
            directory.forget()
    text = resources.files("web").joinpath("demo.toml").read_text("utf-8")
    found_box(directory, parse_venue_file(text, console.zones), console)
    atomic_write(mark, b"")


def _demo_settings(settings: Settings) -> Settings:
    """Allow receivers on this machine, check-in at any hour, and booking; links use loopback."""
    webhooks = settings.webhooks
    return replace(
        settings,
        server=replace(settings.server, app_url=""),
        webhooks=replace(
            webhooks,
            allow_http=True,
            clock_grace_minutes=0,
            allow_networks=(*webhooks.allow_networks, *_LOOPBACK_NETWORKS),
        ),
        door=replace(settings.door, early_minutes=_WHOLE_DAY),
        booking=replace(settings.booking, enabled=True),
    )


def _program() -> str:
    """Return the command that started this program; `make` installs it outside PATH."""
    called = Path(sys.argv[0])
    return shlex.quote(str(called)) if called.name == "venuebox" else "venuebox"
