"""Fixtures: an environment on disk, with a reservation, its guest pass and its email."""

import dataclasses
import shutil
from pathlib import Path

import pytest

from appliance.clock import newest_zone_database
from appliance.core.settings import MailSettings, Settings
from appliance.core.tokens import Keyring, Tokens
from appliance.database.database import Database
from appliance.door.live_feed import Feed
from appliance.email.smtp import SmtpSender
from appliance.email.worker import EmailWorker
from appliance.environment import Environment, Links
from appliance.reservations.email_queue import find_email, queue_email
from appliance.reservations.rows import insert_reservation
from tests.builders import table_id
from tests.clocks import StoppedClock
from tests.conftest import MASTER_KEY, furnished_template
from tests.unit.email.mail_servers import Mailbox

SENDER = "table@riad.example"
GUEST = "yasmine@guest.example"


@pytest.fixture
def clock():
    return StoppedClock("2026-11-20T12:00:00Z")


@pytest.fixture
def mail_settings():
    return MailSettings(host="127.0.0.1", port=1, security="none", sender=SENDER)


@pytest.fixture
async def environment(tmp_path, clock, mail_settings):
    opened = await open_environment(tmp_path / "live.db", clock, mail_settings)
    yield opened
    await opened.database.close()


async def open_environment(path: Path, clock, mail_settings):
    """Open the database at `path`. A new one has a furnished venue (tests/builders.py)."""
    copy_furnished(path)
    database = Database(path, clock, Tokens(), newest_zone_database())
    return Environment(
        "live",
        database,
        Keyring(MASTER_KEY, "live"),
        Settings(mail=mail_settings),
        Links("https://box.example"),
        Feed(database),
    )


def copy_furnished(path: Path) -> None:
    """Copy a furnished database to `path`, unless the file exists."""
    if not path.exists():
        shutil.copy(furnished_template() / "live.db", path)


def a_reservation(tx, **changes):
    """Insert a confirmed reservation for the evening of 2026-11-21. Return its id."""
    starts = changes.pop("starts", 1170)
    values = {
        "id": tx.new_id(), "status": "confirmed", "source": "partner", "table_id": table_id("T1"),
        "date": "2026-11-21", "slot": "19:30", "starts": starts, "ends": 1320, "guests": 4,
        "customer_name": "Yasmine El Fassi", "customer_email": GUEST,
        "access_code": tx.tokens.new_access_code(), "pass_id": tx.tokens.random_bytes(8),
        "link_expires_at": tx.now + 10**9, "created_at": tx.now, "updated_at": tx.now,
    } | changes  # fmt: skip
    insert_reservation(tx, values)
    return values["id"]


def an_email_in(
    tx, *, kind="confirmation", keep=False, recipient=GUEST, language="fr", **reservation
):
    """Insert a reservation and queue an email about it. Return the email's id."""
    reservation_id = a_reservation(tx, **reservation)
    return queue_email(tx, reservation_id, kind, recipient, language, keep=keep)


@pytest.fixture
def an_email(environment):
    """Return `an_email(language="ar")`, which queues a confirmation for a time of its own."""
    minute = iter(range(0, 2000, 2))

    async def queue(**values):
        starts = next(minute)
        values = {"starts": starts, "ends": starts + 1} | values
        return await environment.database.write(an_email_in, **values)

    return queue


@pytest.fixture
def email_row(environment):
    return lambda email_id: environment.database.peek(find_email, email_id)


@pytest.fixture
def mailbox():
    return Mailbox()


@pytest.fixture
def at_port(environment):
    """Return `at_port(1025)`, which returns the environment with its mail server at that port."""
    return lambda port, **settings: _at_port(environment, port, **settings)


def _at_port(environment, port, **settings):
    mail = dataclasses.replace(environment.settings.mail, port=port, **settings)
    return dataclasses.replace(environment, settings=dataclasses.replace(
        environment.settings, mail=mail))  # fmt: skip


@pytest.fixture
async def email_worker(environment, clock, mailbox):
    started = EmailWorker(environment, mailbox)
    await started.start()
    yield started
    await started.close()


@pytest.fixture
async def deliver(at_port, clock, an_email, email_row):
    """Return `deliver(port)`, which queues an email and sends it to the server at that port.

    Its result is the outcome of `send_now`, the row of the email, and the worker.
    """
    workers = []

    async def through(port, *, answer_within=5.0, deadlines=None, **letter):
        environment = at_port(port)
        server = SmtpSender(environment.settings.mail)
        vars(server).update(deadlines or {})
        email_worker = EmailWorker(environment, server)
        email_worker.answer_within = answer_within
        await email_worker.start()
        workers.append(email_worker)
        email_id = await an_email(**letter)
        outcome = await email_worker.send_now(email_id)
        return outcome, email_row(email_id), email_worker

    yield through
    for email_worker in workers:
        await email_worker.close()
