"""`venuebox serve --demo`: a box with sample data, and a printed guide."""

import argparse
import json
import shlex
import sys
import tempfile
import tomllib
from dataclasses import replace
from datetime import date
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any

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
from appliance.outbox import EVENT_TYPES, EXTRA_TYPES
from appliance.reservations.create import enter_by_staff, enter_for_guest, reserve
from appliance.reservations.model import Reservation
from appliance.reservations.request import Booking
from appliance.reservations.rows import get_reservation
from appliance.staff.accounts import create_staff
from appliance.venue.model import (
    find_slot,
    find_tonight,
    find_zone,
    get_venue,
    has_ended,
    list_slots,
    list_tables,
)
from appliance.venue.venue_file import parse_venue_file
from appliance.webhooks.endpoints import register_endpoint
from web.listeners import listen
from web.rendering import make_templates
from web.serve import serve_directory

FREE_TABLE, FREE_SLOT = "T2", "22:00"


async def _prepare(environment: Environment, webhook_url: str | None) -> dict[str, str]:
    """Create a key, a terminal, tonight's reservations and, for `webhook_url`, an endpoint.

    Return the environment's values for the guide.
    """
    database, links = environment.database, environment.links
    issued = await database.write(issue_key, environment.name, "Demo partner")
    if webhook_url is not None:
        types = (*EVENT_TYPES, *EXTRA_TYPES)
        await database.write(register_endpoint, environment.keyring, webhook_url, types)
    _, terminal_token = await database.write(issue_terminal, "Demo door")
    evening = tomllib.loads(_read("demo_evening.toml"))[environment.name]
    reservations = [
        await database.write(_reserve, environment, issued, number, sample)
        for number, sample in enumerate(evening, 1)
    ]
    tables, day = await database.read(_tables_and_tonight)
    guest = reservations[0]
    return {
        "base": links.base,
        "key": issued.key,
        "terminal_token": terminal_token,
        "guest_link": links.access(
            environment.keyring.access_token(guest.id, guest.link_generation)
        ),
        "free_table_id": tables[FREE_TABLE],
        "tonight": day.isoformat(),
    }


def _reserve(
    tx: Transaction,
    environment: Environment,
    issued: IssuedKey,
    number: int,
    sample: dict[str, Any],
) -> Reservation:
    source, slot = sample["source"], sample.get("slot")
    tables, day = _tables_and_tonight(tx)
    is_partners = source == "partner"
    # Ask for emails only in the test environment, which sends none but shows them in its outbox.
    sends_email = environment.name == "test" and is_partners
    booking = Booking(
        table_id=tables[sample["table"]],
        date=day,
        slot=slot if source == "manual" else _still_bookable(tx, slot, day),
        guests=sample["guests"],
        customer_name=sample["name"],
        customer_email="sara@example.com" if sends_email else None,
        customer_phone=f"+212 600 000 {number:03d}",
        external_ref=f"DEMO-{number}" if is_partners else None,
        idempotency_key=f"demo-evening-{number}" if is_partners else None,
        notify_customer=sends_email,
    )
    if source == "platform":
        return enter_for_guest(tx, booking)
    if source == "manual":
        return enter_by_staff(tx, booking, actor="box")
    key = find_key(tx, issued.id)
    assert key is not None  # noqa: S101 - the key has just been issued
    granted = reserve(tx, environment.name, key, booking)
    return get_reservation(tx, granted.issued.reservation_id)


def _still_bookable(reader: Reader, start: str | None, day: date) -> str | None:
    """Return `start`, or None (the whole evening) if that slot has already ended."""
    slot = find_slot(list_slots(reader), start, day) if start else None
    ended = has_ended(slot, day, get_venue(reader), find_zone(reader), reader.now)
    return None if ended else start


def _tables_and_tonight(reader: Reader) -> tuple[dict[str, str], date]:
    return {table.number: table.id for table in list_tables(reader)}, find_tonight(reader)


_PORT_OPTIONS = "--port, or with make run PORT=8090"
_LOOPBACK = "127.0.0.1"
_LOOPBACK_NETWORKS = ("127.0.0.0/8", "::1")
_MARK = "demo"
_WHOLE_DAY = 24 * 60


def run_demo(arguments: argparse.Namespace, console: Console) -> int:
    """Run `venuebox serve --demo` and return the exit status.

    Each start creates a new box in a temporary directory or in `--data DIR`, which must be empty
    or contain an earlier demo. With `--keep`, an earlier demo in `--data DIR` continues.
    """
    host = arguments.host or _LOOPBACK
    if not is_loopback_host(host):
        raise OperatorError(f"the demo listens on this machine only, not on {host}. Omit --host.")
    if arguments.data is not None:
        return _serve(console.directory(arguments), host, arguments, console)
    with tempfile.TemporaryDirectory(prefix="venuebox-demo-", ignore_cleanup_errors=True) as root:
        return _serve(DataDirectory(Path(root)), host, arguments, console)


def _serve(
    directory: DataDirectory, host: str, arguments: argparse.Namespace, console: Console
) -> int:
    settings = console.settings(directory)
    port = settings.server.port if arguments.port is None else arguments.port
    with listen(host, port, _PORT_OPTIONS) as listener:
        if not (arguments.keep and _read_mark(directory)):
            _create_box(directory, console)
        lifetime = "keeps its data" if arguments.keep else "deletes its data when it stops"
        if arguments.data is not None and not arguments.keep:
            lifetime = "starts from scratch at the next start (--keep continues it)"
        on_open = partial(_print_guide, directory=directory, lifetime=lifetime)
        settings = _demo_settings(settings)
        return serve_directory(directory, settings, console, listener, host=host, on_open=on_open)


async def _print_guide(box: Box, *, directory: DataDirectory, lifetime: str) -> None:
    """Print the guide, with each command on a single line.

    At a demo's first start, also prepare both environments, print the steps and store the values.
    """
    stored = _read_mark(directory)
    if stored:  # the port may have changed since the values were stored
        values = json.loads(stored.replace(json.loads(stored)["live"]["base"], box.live.links.base))
    else:
        values = await _prepare_box(box)
        atomic_write(directory.root / _MARK, json.dumps(values).encode())
    offered = await box.live.database.write(offer_pairing, "Demo phone", "override")
    text = (
        make_templates()
        .get_template("demo_guide.txt")
        .render(
            **values,
            is_first_start=not stored,
            lifetime=lifetime,
            pairing_link=offered.link(box.live.links.base),
            minutes=PAIRING_LIFE_MS // 60_000,
            program=_program(),
            directory=directory.root,
        )
    )
    print(text, flush=True)


async def _prepare_box(box: Box) -> dict[str, Any]:
    """Prepare both environments. Return the values for the guide, in a form that JSON can store."""
    token = box.test.keyring.echo_token(box.tokens.new_id(box.clock.now()))
    receiver = f"{box.test.links.base}/echo/{token}"
    live, test = await _prepare(box.live, None), await _prepare(box.test, receiver)
    invitation = await box.live.database.write(create_staff, "Yasmine", "owner")
    booking = {
        "tableId": test["free_table_id"],
        "date": test["tonight"],
        "slot": FREE_SLOT,
        "guests": 2,
        "customer": {"name": "Amina Idrissi", "phone": "+212 611 111 111"},
        "idempotencyKey": "demo-1",
        "notifyCustomer": False,
    }
    return {
        "live": live,
        "test": test,
        "table": FREE_TABLE,
        "slot": FREE_SLOT,
        "booking": json.dumps(booking),
        "scan_id": box.tokens.new_id(box.clock.now()),
        "welcome": f"{live['base']}/portal/welcome#{invitation.secret}",
        "receiver": receiver,
        "watch": f"{test['base']}#{token}",
    }


def _read(name: str) -> str:
    """Return the text of a file beside this module."""
    return resources.files("web").joinpath(name).read_text("utf-8")


def _read_mark(directory: DataDirectory) -> str:
    """Return the values that an earlier demo stored as JSON, or "" if there are none."""
    mark = directory.root / _MARK
    return mark.read_text("utf-8") if mark.exists() else ""


def _create_box(directory: DataDirectory, console: Console) -> None:
    """Create the demo's box. Replaces an earlier demo in the same directory."""
    mark = directory.root / _MARK
    if mark.exists():
        with directory.lock():
            directory.forget()
    found_box(directory, parse_venue_file(_read("demo_venue.toml"), console.zones), console)
    atomic_write(mark, b"")


def _demo_settings(settings: Settings) -> Settings:
    """Return `settings`, changed for the demo.

    Webhooks to this machine are allowed. Links contain the loopback address.
    """
    webhooks = settings.webhooks
    return replace(
        settings,
        server=replace(settings.server, app_url=""),
        webhooks=replace(
            webhooks,
            allow_http=True,
            allow_networks=(*webhooks.allow_networks, *_LOOPBACK_NETWORKS),
        ),
    )


def _program() -> str:
    """Return the shell command that runs this program.

    This is the path that the program was started with, or `venuebox` if the file at that path has
    another name.
    """
    called = Path(sys.argv[0])
    return shlex.quote(str(called)) if called.name == "venuebox" else "venuebox"
