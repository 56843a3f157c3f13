"""Upgrade and serve a data directory that an earlier version created.

tests/data/box_433ea4c.tar.xz was created by `venuebox serve` of commit 433ea4c (schema 1). It
contains the directory after a clean stop, and known.json: the API keys, terminal tokens,
password, guest passes, webhook secrets and responses that the old version issued. All people
and secrets in it are invented.
"""

import hashlib
import hmac
import json
import shutil
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from appliance.backup.archive import open_backup
from appliance.backup.catalogue import list_backups
from appliance.backup.create import Maker, back_up_before_upgrade
from appliance.backup.recovery_key import find_recovery_key
from appliance.backup.restore import restore_blank
from appliance.box import Box, open_box
from appliance.clock import newest_zone_database
from appliance.core.data_directory import DataDirectory
from appliance.core.settings import read_settings
from appliance.core.tokens import Tokens
from appliance.database.integrity import list_faults, read_schema_number
from appliance.database.migrate import list_migrations
from appliance.door.scan_log import find_broken_link
from appliance.staff.audit_log import find_broken_audit_link
from appliance.webhooks.client import connect_directly
from appliance.webhooks.dispatcher import make_dependencies
from appliance.webhooks.url_policy import EgressGuard, EgressPolicy, is_own_address
from tests.app.portal.people import FROM_OURS
from tests.application import application_of
from tests.clocks import StoppedClock
from tests.webhooks.receivers import Receiver, a_server

ARCHIVE = Path(__file__).parents[2] / "data" / "box_433ea4c.tar.xz"
NEWEST = list_migrations()[-1][0]
PREFIXES = {"live": "", "test": "/test"}


@dataclass
class Serving:
    """The current application over the old data, and the contents of known.json."""

    box: Box
    client: TestClient[web.Request, web.Application]
    known: dict[str, Any]

    async def call(self, token, method, path, body=None):
        """Call with a bearer token; return (status, decoded JSON, headers)."""
        headers = {"Authorization": f"Bearer {token}"}
        async with self.client.request(method, path, json=body, headers=headers) as answer:
            return answer.status, await answer.json(), answer.headers


@pytest.fixture
def clock():
    """The evening of the day on which the old box was created."""
    return StoppedClock("2026-11-23T19:00:00Z")


@pytest.fixture
def known(tmp_path):
    """Unpack the archive and return known.json."""
    shutil.unpack_archive(ARCHIVE, tmp_path, filter="data")
    return json.loads((tmp_path / "known.json").read_text("utf-8"))


@pytest.fixture
def directory(tmp_path, known):
    return DataDirectory(tmp_path / "box")


def settings_of(directory):
    """Read the old settings file; trust the clock immediately."""
    settings = read_settings(directory.settings_file, {})
    return replace(settings, webhooks=replace(settings.webhooks, clock_grace_minutes=0))


def back_up(directory, clock):
    """Make the backup that `serve` makes before an upgrade. Returns its message."""
    zones = newest_zone_database()
    return back_up_before_upgrade(Maker(directory, settings_of(directory), clock, Tokens(), zones))


@asynccontextmanager
async def serving(directory, clock, known):
    """Upgrade, open and serve the box."""
    box = open_box(directory.root, directory.master_key(), settings_of(directory),
                   address=directory.remembered_address(), clock=clock, tokens=Tokens(),
                   zones=newest_zone_database())  # fmt: skip
    try:
        async with TestClient(TestServer(application_of(box))) as client:
            yield Serving(box, client, known)
    finally:
        await box.close()


@pytest.fixture
async def receiver(monkeypatch):
    """Serve partner.example, the host of the old endpoints, on a free port."""
    receiver = Receiver()
    async with a_server(receiver.converse) as receiver.port:

        async def resolve(_host):
            return [ip_address("127.0.0.1")]

        async def connect(addresses, _port):
            return await connect_directly(addresses, receiver.port)

        def dependencies_of(settings):
            policy = EgressPolicy(settings.allow_networks, is_own_address)
            guard = EgressGuard(policy, resolve)
            return replace(make_dependencies(settings), guard=guard, connect=connect)

        monkeypatch.setattr("web.sandbox.make_dependencies", dependencies_of)
        yield receiver


@pytest.fixture
async def old_box(directory, clock, known, receiver):
    async with serving(directory, clock, known) as found:
        yield found


@pytest.mark.usefixtures("receiver")
async def test_the_box_is_backed_up_and_upgraded_and_stays_intact(directory, clock, known):
    assert [read_schema_number(path) for path in directory.databases] == [1, 1]

    assert "schema 1 becomes" in back_up(directory, clock)
    async with serving(directory, clock, known) as old_box:
        broken = [
            environment.database.peek(find)
            for environment in old_box.box.environments
            for find in (find_broken_link, find_broken_audit_link)
        ]

    assert broken == [None] * 4
    assert [read_schema_number(path) for path in directory.databases] == [NEWEST, NEWEST]
    assert [list_faults(path) for path in directory.databases] == [[], []]
    assert {header.schema for _, header in list_backups(directory.root / "backups")} == {1}


async def test_the_old_api_keys_read_each_reservation_unchanged(old_box):
    for name, prefix in PREFIXES.items():
        given = old_box.known[name]

        status, answer, _ = await old_box.call(
            given["key"], "GET", f"{prefix}/v1/reservations?limit=100"
        )

        assert status == 200
        now = {item["id"]: item for item in answer["items"]}
        assert {item["status"] for item in now.values()} == {
            "confirmed", "pending", "partial", "requested", "cancelled", "declined"
        }  # fmt: skip
        assert now.keys() == {item["id"] for item in given["listed"]}
        for item in given["listed"]:
            assert item.items() <= now[item["id"]].items()
        assert now[given["partly"]["serviceReservationId"]]["checkedInAt"] is not None


async def test_an_old_booking_is_replayed_and_a_new_one_is_made(old_box):
    given = old_box.known["live"]
    body = given["confirmed"]["wish"]
    first = {name: value for name, value in given["confirmed"].items()
             if name not in {"wish", "pass"}}  # fmt: skip

    status, replayed, headers = await old_box.call(given["key"], "POST", "/v1/reservations", body)
    assert (status, replayed, headers["Idempotent-Replayed"]) == (200, first, "true")

    again = {**body, "idempotencyKey": "now-1"}
    status, refused, _ = await old_box.call(given["key"], "POST", "/v1/reservations", again)
    assert (status, refused["code"]) == (409, "TABLE_TAKEN")

    again["slot"] = "22:00"
    status, booked, _ = await old_box.call(given["key"], "POST", "/v1/reservations", again)
    assert (status, booked["status"]) == (201, "confirmed")


async def test_the_owner_signs_in_with_the_old_password(old_box):
    form = {"name": old_box.known["staff"], "password": old_box.known["password"]}

    async with old_box.client.post(
        "/portal/sign-in", data=form, headers=FROM_OURS, allow_redirects=False
    ) as answer:
        assert (answer.status, answer.headers["Location"]) == (303, "/portal")


async def test_the_old_terminal_tokens_admit_guests_by_old_passes(old_box):
    for name, prefix in PREFIXES.items():
        given = old_box.known[name]
        for terminal, guest, arrivals, result in (
            ("terminal", "confirmed", None, "checked_in"),
            ("phone", "confirmed", None, "already_checked_in"),
            ("phone", "partly", 3, "party_added"),
            ("phone", "cancelled", None, "cancelled"),
        ):
            scan = {"scanId": f"now-{guest}-{result}", "code": given[guest]["pass"]}
            scan |= {} if arrivals is None else {"arrivals": arrivals}

            status, verdict, _ = await old_box.call(
                given[terminal], "POST", f"{prefix}/terminal/v1/scans", scan
            )

            assert (status, verdict["result"]) == (200, result)


async def test_the_pending_deliveries_are_sent_and_signed_with_the_old_secrets(old_box, receiver):
    for request in await receiver.got(len(PREFIXES)):
        headers, raw, body = request.headers, request.raw, request.body
        (given,) = [
            old_box.known[name]
            for name in PREFIXES
            if old_box.known[name]["undelivered"]["serviceReservationId"]
            == body["data"]["reservation"]["serviceReservationId"]
        ]
        stamp, _, signature = headers["x-service-signature"].partition(",v1=")
        signed = stamp.removeprefix("t=").encode() + b"." + raw
        expected = hmac.new(given["secret"].encode(), signed, hashlib.sha256).hexdigest()
        assert signature == expected
        assert headers["x-service-event"] == "reservation.created"
        assert body["data"]["reservation"]["externalRef"] == "PARTNER-99"


@pytest.mark.usefixtures("receiver")
async def test_an_old_backup_is_restored_with_the_old_recovery_key(
    directory, clock, known, tmp_path
):
    ((backup, _),) = list_backups(directory.root / "backups")
    blank, zones = DataDirectory(tmp_path / "blank"), newest_zone_database()

    with open_backup(backup) as file:
        restore_blank(file, find_recovery_key(directory), blank, clock, zones, lambda *_: None)

    async with serving(blank, clock, known) as restored:
        status, answer, _ = await restored.call(
            known["live"]["key"], "GET", "/v1/reservations?limit=100"
        )
    assert (status, len(answer["items"])) == (200, len(known["live"]["listed"]))
