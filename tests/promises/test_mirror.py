"""The mirror of a box in Debian's PostgreSQL: its content, and faults of the server."""

import asyncio
import json
import re
import shutil
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from appliance.checks.check import CheckContext
from appliance.checks.outgoing import mirror as check_mirror
from appliance.clock import newest_zone_database
from appliance.core.data_directory import DataDirectory
from appliance.core.i18n import load_languages
from appliance.core.settings import MirrorSettings
from appliance.mirror import carrier, changes, server
from appliance.mirror.carrier import Carrier, start_mirror
from appliance.mirror.compare import compare
from appliance.mirror.server import Trouble
from appliance.privacy import erase_guest
from appliance.reservations.create import book
from tests.builders import VENUE_ID, a_booking, table_id
from tests.clocks import StoppedClock
from tests.conftest import opened_box, with_settings
from tests.ports import kept_port
from tests.promises.postgres import Postgres
from tests.promises.test_mirror_kill import snapshot
from tests.readme import ROOT
from tests.waiting import within

pytestmark = pytest.mark.process
GUEST = "Salma Idrissi"


@pytest.fixture(scope="module")
def postgres():
    found = Postgres(fsync="off").start()
    yield found
    found.stop()


@pytest.fixture
def url(postgres):
    """A new database for each test."""
    postgres.ask("DROP DATABASE IF EXISTS venues WITH (FORCE)", "postgres")
    return postgres.create()


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(carrier, "_PACE_SECONDS", 0.0)
    monkeypatch.setattr(carrier, "_IDLE_SECONDS", 0.05)


@dataclass
class Mirrored:
    """A box with a mirror."""

    box: Any
    settings: MirrorSettings
    carrier: Carrier
    postgres: Postgres

    @property
    def folder(self) -> Path:
        return self.box.live.database.path.parent

    async def write(self, sql: str, **values: Any) -> None:
        await self.box.live.database.write(lambda tx: tx.execute(sql, values))

    async def book(self, **wishes: Any) -> str:
        booking = a_booking(idempotency_key=uuid4().hex, **wishes)
        return (await self.box.live.database.write(book, booking)).id

    async def fill(self) -> str:
        """Copy the waiting changes. Return the trouble, if any."""
        await self.carrier.run()
        return self.box.live.database.peek(changes.find_state).trouble

    async def different(self) -> list[str]:
        """Return the tables that differ from the mirror."""
        settings, found = self.settings, partial(snapshot, self.folder)
        tables, waiting = await asyncio.to_thread(compare, found, settings)
        assert waiting == 0
        return [table.name for table in tables if not table.is_equal]

    def ask(self, sql: str) -> list[str]:
        return self.postgres.ask(sql)

    def checked(self):
        """Return the status of `doctor`, with finding and remedy in English."""
        settings = with_settings(mirror={"url": self.settings.url})
        clock, zones = self.box.clock, newest_zone_database()
        found = check_mirror(CheckContext(DataDirectory(self.folder), settings, clock, zones))
        texts = [
            [part.text(language) for part in (found.finding, found.remedy) if part]
            for language in load_languages().all()
        ]
        return found.status, " ".join(text for each in texts for text in each)


@asynccontextmanager
async def mirrored(folder, postgres, url, **more):
    settings = with_settings(mirror={"url": url, **more})
    async with opened_box(folder, StoppedClock("2026-11-21T19:00:00Z"), settings) as box:
        await start_mirror(box.live.database, settings.mirror)
        filled = Carrier(box.live.database, settings.mirror)
        yield Mirrored(box, settings.mirror, filled, postgres)


@pytest.fixture
async def mirror(tmp_path, postgres, url):
    async with mirrored(tmp_path, postgres, url) as found:
        yield found


async def test_the_first_run_copies_every_row_and_later_runs_only_changes(mirror):
    first = await mirror.book()

    assert await mirror.fill() == ""

    assert mirror.ask("SELECT id, guests, starts FROM venuebox.reservation") == [f"{first}|2|1170"]
    assert mirror.ask("SELECT count(*) FROM venuebox.venue_table") == ["6"]
    assert mirror.ask("SELECT id, name, time_zone FROM venuebox.venue") == [
        f"{VENUE_ID}|Riad Atlas|Africa/Casablanca"
    ]
    second = await mirror.book(table_id=table_id("T2"))
    await mirror.write("UPDATE reservation SET status = 'cancelled' WHERE id = :id", id=first)
    await mirror.write("UPDATE venue SET name = 'Riad Rif'")
    assert await mirror.fill() == ""
    found = mirror.ask("SELECT id, status FROM venuebox.reservation")
    assert sorted(found) == sorted([f"{first}|cancelled", f"{second}|confirmed"])
    assert mirror.ask("SELECT name FROM venuebox.venue") == ["Riad Rif"]
    assert await mirror.different() == []


async def test_times_dates_and_booleans_have_the_same_values_as_in_the_box(mirror):
    await mirror.book()
    await mirror.write("UPDATE reservation SET vip = 1, checked_in_at = 1763751600123")

    await mirror.fill()

    sql = """SELECT date, vip, extract(epoch FROM checked_in_at), slot, cancelled_at
             FROM venuebox.reservation"""
    assert mirror.ask(sql) == ["2026-11-21|t|1763751600.123000|19:30|"]


async def test_rows_deleted_in_the_box_are_deleted_in_the_next_batch(mirror):
    await mirror.fill()

    await mirror.write("DELETE FROM slot WHERE name = 'Brunch'")
    await mirror.write("DELETE FROM venue_table WHERE number = 'T6'")
    await mirror.fill()

    assert mirror.ask("SELECT name FROM venuebox.slot ORDER BY name") == ["Dîner", "Soirée"]
    assert mirror.ask("SELECT count(*) FROM venuebox.venue_table") == ["5"]
    assert await mirror.different() == []


async def test_the_test_environment_is_not_mirrored(mirror):
    await mirror.box.test.database.write(book, a_booking(idempotency_key="1"))

    await mirror.fill()

    assert mirror.ask("SELECT count(*) FROM venuebox.reservation") == ["0"]


async def test_contact_data_is_mirrored_only_if_the_setting_allows_it(tmp_path, postgres, url):
    sql = "SELECT customer_name, customer_phone FROM venuebox.reservation"
    async with mirrored(tmp_path, postgres, url) as without:
        await without.book()
        await without.fill()
        assert without.ask(sql) == ["|"]
    async with mirrored(tmp_path, postgres, url, contacts=True) as wanted:
        await wanted.fill()
        assert wanted.ask(sql) == [f"{GUEST}|+212 600 000 001"]
        assert await wanted.different() == []
    async with mirrored(tmp_path, postgres, url) as without:
        await without.fill()
        assert without.ask(sql) == ["|"]
        assert await without.different() == []


async def test_an_erased_guest_is_erased_from_the_mirror_in_the_next_batch(tmp_path, postgres, url):
    async with mirrored(tmp_path, postgres, url, contacts=True) as mirror:
        reservation = await mirror.book(notes="près de la fenêtre")
        await mirror.fill()

        await mirror.box.live.database.write(erase_guest, reservation, actor="box")
        await mirror.fill()

        sql = "SELECT concat(customer_name, customer_phone, notes) FROM venuebox.reservation"
        assert mirror.ask(sql) == [""]


async def test_a_box_killed_before_it_recorded_a_batch_continues_without_a_new_copy(
    mirror, monkeypatch
):
    await mirror.fill()
    await mirror.book()

    def killed(*_):
        raise RuntimeError

    with monkeypatch.context() as patch:
        patch.setattr(changes, "_store", killed)
        with pytest.raises(RuntimeError):
            await mirror.fill()
    monkeypatch.setattr(changes, "restart_copy", killed)
    mirror.carrier = Carrier(mirror.box.live.database, mirror.settings)

    assert await mirror.fill() == ""
    assert await mirror.different() == []


async def test_an_interrupted_first_copy_continues_where_it_stopped(mirror, monkeypatch):
    monkeypatch.setattr(carrier, "_SIZE", 2)
    mirror.carrier = Carrier(mirror.box.live.database, mirror.settings)
    carry, carried = server.Session.carry, []

    async def cut(session, batch):
        if len(carried) == 2:
            raise Trouble("unreachable")
        await carry(session, batch)
        carried.append(batch.position.copied)

    with monkeypatch.context() as patch:
        patch.setattr(server.Session, "carry", cut)
        assert await mirror.fill() == "unreachable"
    assert carried == [2, 4]

    def refuse(*_):
        raise AssertionError("a new copy")

    monkeypatch.setattr(changes, "restart_copy", refuse)
    assert await mirror.fill() == ""
    assert await mirror.different() == []


async def test_restoring_the_box_from_a_backup_removes_the_lost_changes_from_the_mirror(
    tmp_path, postgres, url
):
    async with mirrored(tmp_path, postgres, url) as mirror:
        await mirror.fill()
    shutil.copytree(tmp_path, tmp_path / "backup")
    async with mirrored(tmp_path, postgres, url) as mirror:
        await mirror.book()
        await mirror.fill()
    async with mirrored(tmp_path / "backup", postgres, url) as restored:
        kept = await restored.book(table_id=table_id("T3"))
        await restored.fill()

        assert restored.ask("SELECT id FROM venuebox.reservation") == [kept]
        assert await restored.different() == []


async def test_a_mirror_server_restored_from_a_backup_gets_the_missing_changes_again(mirror):
    await mirror.fill()
    before = mirror.ask("SELECT token, carried FROM venuebox.venue")[0].split("|")
    await mirror.book()
    await mirror.fill()
    mirror.ask("DELETE FROM venuebox.reservation")
    back = f"token = '{before[0]}', carried = {before[1]}"
    mirror.ask(f"UPDATE venuebox.venue SET {back}")  # noqa: S608

    await mirror.book(table_id=table_id("T2"))
    assert await mirror.fill() == ""

    assert await mirror.different() == []


async def test_rows_changed_in_the_mirror_are_found_and_repaired_by_a_new_copy(mirror):
    await mirror.book()
    await mirror.fill()
    mirror.ask("UPDATE venuebox.reservation SET guests = 20")
    mirror.ask("DELETE FROM venuebox.slot")
    for number in (7, -1):
        values = f"('{VENUE_ID}', {number})"
        mirror.ask(f"INSERT INTO venuebox.scan (venue_id, id) VALUES {values}")  # noqa: S608

    assert await mirror.different() == ["slot", "reservation", "scan"]

    await mirror.box.live.database.write(changes.restart_copy)
    await mirror.fill()
    assert await mirror.different() == []


async def test_two_venues_share_a_database_without_changing_each_others_rows(
    tmp_path, postgres, url
):
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    async with (
        mirrored(tmp_path / "first", postgres, url) as first,
        mirrored(tmp_path / "second", postgres, url) as second,
    ):
        await second.write("UPDATE venue SET id = :id", id="00000000-0000-4000-8000-000000000002")
        await asyncio.gather(first.fill(), second.fill())
        await first.book()
        await asyncio.gather(first.fill(), second.fill())
        assert first.ask("SELECT count(*) FROM venuebox.venue_table") == ["12"]

        await first.write("DELETE FROM slot")
        await first.box.live.database.write(changes.restart_copy)
        await first.fill()

        assert await first.different() == await second.different() == []
        assert first.ask("SELECT count(*) FROM venuebox.slot") == ["3"]


async def test_no_changes_are_recorded_after_the_mirror_is_removed_from_the_settings(mirror):
    await mirror.fill()

    await start_mirror(mirror.box.live.database, MirrorSettings())
    await mirror.book()

    sql = "SELECT count(*) FROM mirror_change UNION ALL SELECT count(*) FROM mirror"
    assert mirror.box.live.database.peek(lambda reader: list(reader.rows(sql))) == [(0,), (0,)]
    await start_mirror(mirror.box.live.database, mirror.settings)
    assert await mirror.fill() == ""
    assert await mirror.different() == []


PREVENTED = {
    "read_only": ("ALTER DATABASE venues SET default_transaction_read_only = on",
                  "ALTER DATABASE venues RESET default_transaction_read_only"),
    "schema": ("ALTER TABLE venuebox.reservation ALTER COLUMN guests TYPE text",
               """ALTER TABLE venuebox.reservation ALTER COLUMN guests TYPE bigint
                  USING guests::bigint"""),
    "full": ("""CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
                $$ BEGIN RAISE EXCEPTION USING ERRCODE = '53100'; END $$;
                CREATE TRIGGER full_disk BEFORE INSERT ON venuebox.reservation
                EXECUTE FUNCTION full_disk()""",
             "DROP TRIGGER full_disk ON venuebox.reservation"),
    "failed": ("""CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS
                  $$ BEGIN RAISE EXCEPTION 'Salma Idrissi' USING ERRCODE = 'XX001'; END $$;
                  CREATE TRIGGER broken BEFORE INSERT ON venuebox.reservation
                  FOR EACH ROW EXECUTE FUNCTION broken()""",
               "DROP TRIGGER broken ON venuebox.reservation"),
    "unreachable": ("", ""),
}  # fmt: skip


@pytest.mark.parametrize("trouble", PREVENTED)
async def test_a_failing_mirror_server_is_one_finding_and_later_gets_every_change(
    mirror, trouble, caplog
):
    await mirror.fill()
    prevent, allow = PREVENTED[trouble]
    where = "postgres" if trouble == "read_only" else "venues"
    if prevent:
        mirror.postgres.ask(prevent, where)
    else:
        mirror.postgres.kill()

    await mirror.book()
    assert [await mirror.fill() for _ in range(3)] == [trouble] * 3

    status, said = mirror.checked()
    assert status == "warn"
    assert str(mirror.postgres.folder) in said or trouble in {"forbidden", "refused"}
    warned = [record for record in caplog.records if record.name.startswith("appliance.mirror")]
    assert [r.levelname for r in warned if r.levelname != "INFO"] == ["WARNING"]
    assert GUEST not in caplog.text
    if allow:
        mirror.postgres.ask(allow, where)
    else:
        mirror.postgres.start()
    assert await mirror.fill() == ""
    assert mirror.checked()[0] == "ok"
    assert await mirror.different() == []


async def test_a_database_user_who_cannot_create_the_schema_is_reported(tmp_path, postgres, url):
    postgres.ask("DROP ROLE IF EXISTS guest")
    postgres.ask("CREATE ROLE guest LOGIN")
    async with mirrored(tmp_path, postgres, url.replace("postgres@", "guest@")) as mirror:
        assert await mirror.fill() == "forbidden"
        assert mirror.checked()[0] == "warn"


async def test_an_unknown_database_or_user_is_reported_without_the_password(
    tmp_path, postgres, url, caplog
):
    wrong = url.replace("postgres@/venues", "nobody:hush-hush@/elsewhere")
    async with mirrored(tmp_path, postgres, wrong) as mirror:
        assert await mirror.fill() == "refused"

        assert "hush" not in caplog.text + mirror.checked()[1]


async def test_a_hanging_mirror_server_delays_no_booking(mirror, monkeypatch):
    await mirror.fill()
    monkeypatch.setattr(server, "ANSWER_SECONDS", 0.3)
    monkeypatch.setattr(server, "_CONNECT_SECONDS", 0.3)
    mirror.postgres.hang()
    try:
        filling = asyncio.create_task(mirror.fill())
        await asyncio.sleep(0.1)
        await mirror.book()
        assert not filling.done()
        assert await filling == "unreachable"
        monkeypatch.setattr(server, "_CONNECT_SECONDS", 60)
        filling = asyncio.create_task(mirror.fill())
        await asyncio.sleep(0.1)
        filling.cancel()
        async with within("the box to stop"):
            await asyncio.wait([filling])
    finally:
        mirror.postgres.wake()

    assert await mirror.fill() == ""
    assert await mirror.different() == []


async def test_on_a_slow_connection_batches_become_smaller_until_they_arrive(mirror, monkeypatch):
    await mirror.fill()
    for number in range(1, 6):
        await mirror.book(table_id=table_id(f"T{number}"))
    carry, sizes = server.Session.carry, []

    async def slow(session, batch):
        sizes.append(mirror.carrier._size)
        if sizes[-1] > 100:
            raise TimeoutError
        await carry(session, batch)

    monkeypatch.setattr(server.Session, "carry", slow)

    assert [await mirror.fill() for _ in range(3)] == ["unreachable", "unreachable", ""]
    assert sizes == [500, 125, 31]
    assert await mirror.different() == []


def a_certificate(folder, host):
    """Write a self-signed certificate and its key in the format of a server."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(1).not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=9))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    encoding = serialization.Encoding.PEM
    (folder / "server.crt").write_bytes(made.public_bytes(encoding))
    plain = serialization.NoEncryption()
    form = serialization.PrivateFormat.TraditionalOpenSSL
    (folder / "server.key").write_bytes(key.private_bytes(encoding, form, plain))


async def test_a_mirror_server_is_trusted_only_by_its_certificate(tmp_path):
    server_ = Postgres(listen_addresses="127.0.0.1", ssl="on", fsync="off")
    port = kept_port(server_)
    server_.settings["port"] = str(port)
    a_certificate(server_.cluster, "localhost")
    for name in ("server.key", "server.crt"):
        shutil.copystat(server_.cluster / "PG_VERSION", server_.cluster / name)
        shutil.chown(server_.cluster / name, (server_.cluster).owner(), server_.cluster.group())
    authority = tmp_path / "authority.pem"
    shutil.copy(server_.cluster / "server.crt", authority)
    server_.start()
    try:
        server_.ask("CREATE DATABASE venues", "postgres")

        async def fill(host, query):
            url = f"postgresql://{server_._user}@{host}:{port}/venues{query}"
            folder = tmp_path / f"{host}{len(query)}"
            folder.mkdir()
            async with mirrored(folder, server_, url) as mirror:
                return await mirror.fill()

        assert await fill("localhost", "") == "certificate"
        assert await fill("localhost", f"?sslrootcert={authority}") == ""
        assert await fill("127.0.0.1", f"?sslrootcert={authority}") == "certificate"
        assert await fill("127.0.0.1", f"?sslmode=verify-ca&sslrootcert={authority}") == ""
        assert await fill("127.0.0.1", "?sslmode=require") == ""
        server_.stop()
        server_.settings["ssl"] = "off"
        server_.start()
        assert await fill("localhost", f"?sslmode=verify-full&sslrootcert={authority}") == (
            "certificate"
        )
        assert await fill("localhost", "?sslmode=disable") == ""
    finally:
        server_.stop()


def questions():
    """Return the queries of the document, which the dashboard shares."""
    folder = ROOT / "docs" / "operations"
    shown = re.findall(r"```sql\n(.*?)\n```", (folder / "mirror.md").read_text("utf-8"), re.DOTALL)
    dashboard = json.loads((folder / "mirror-dashboard.json").read_text("utf-8"))
    assert [panel["targets"][0]["rawSql"] for panel in dashboard["panels"]] == shown
    return shown


async def test_every_query_in_the_document_returns_rows(mirror):
    now = datetime.now(UTC)
    saturday = now.date() - timedelta(days=(now.isoweekday() + 1) % 7)
    friday = saturday - timedelta(days=1)
    for number, day in enumerate((friday, saturday), 1):
        await mirror.book(table_id=table_id(f"T{number}"))
        sql = """UPDATE reservation SET status = 'completed', date = :day, created_at = :at,
                 checked_in_at = :at, left_at = :at + 5400000, arrived = 2 WHERE seq = :n"""
        at = round(now.timestamp() * 1000) - 86_400_000
        await mirror.write(sql, day=day.isoformat(), at=at, n=number)
    await mirror.box.live.database.write(pay_and_admit, at)
    await mirror.fill()

    answers = [mirror.ask(question) for question in questions()]

    assert len(answers) == 10
    assert all(answers)
    assert answers[0][0].startswith("Riad Atlas|1|2|2|0")
    assert "Riad Atlas|5 Fri|2" in answers[1]
    assert "Riad Atlas|2|2|90|2.0" in answers[9]


def pay_and_admit(tx, at):
    reservation = tx.value("SELECT id FROM reservation")
    tx.insert("payment", {"id": tx.new_id(), "reservation_id": reservation, "at": at,
                          "amount": 500, "method": "cash"})  # fmt: skip
    tx.insert("terminal", {"id": tx.new_id(), "name": "Door", "created_at": at})
    terminal = tx.value("SELECT id FROM terminal")
    tx.insert("scan_log", {"scan_id": "1", "terminal_id": terminal, "at": at, "kind": "pass",
                           "result": "ok", "admitted": 2, "verdict": "{}"})  # fmt: skip


async def test_a_connection_lost_during_a_batch_loses_no_change(mirror, monkeypatch):
    await mirror.fill()
    await mirror.book()
    cut = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE application_name = 'venuebox'"""
    upsert = server.upsert

    def cut_before(table):
        mirror.ask(cut)
        return upsert(table)

    with monkeypatch.context() as patch:
        patch.setattr(server, "upsert", cut_before)
        assert await mirror.fill() == "unreachable"
    assert mirror.ask("SELECT count(*) FROM venuebox.reservation") == ["0"]

    assert await mirror.fill() == ""
    assert await mirror.different() == []
