"""The changes that a box records for its mirror, tested without a server."""

import asyncio
import os

import pytest

from appliance.core.files import name_user
from appliance.core.settings import MirrorSettings, parse_settings
from appliance.mirror import changes
from appliance.mirror.carrier import start_mirror
from appliance.mirror.server import Trouble, connected, server_name
from appliance.mirror.tables import BY_NAME, TABLES
from appliance.reservations.create import book
from tests.builders import a_booking
from tests.unit.rows import execute, read

URL = "postgresql://box:" + "hush" + "@db.example/venues"


@pytest.fixture
async def noting(box):
    await start_mirror(box.live.database, MirrorSettings(URL))
    await box.live.database.write(book, a_booking(idempotency_key="1"))
    await execute(
        box,
        """INSERT INTO payment (id, reservation_id, at, amount, method)
           SELECT id, id, 1, 1, 'cash' FROM reservation""",
    )
    await execute(box, "INSERT INTO terminal (id, name, created_at) VALUES ('t', 'Door', 1)")
    await execute(
        box,
        """INSERT INTO scan_log (scan_id, terminal_id, at, kind, result, admitted, verdict)
           VALUES ('s', 't', 1, 'pass', 'ok', 2, '{}')""",
    )
    await execute(
        box,
        """INSERT INTO api_key (id, lineage, name, hash, prefix, last_four, scopes, created_at)
           VALUES ('k', 'k', 'Partner', x'00', 'svc', 'last', '', 1)""",
    )
    return box


@pytest.mark.parametrize(
    ("table", "column"),
    [
        (table.name, column.name)
        for table in TABLES
        for column in table.columns
        if column.source == f'"{column.name}"'
    ],
)
async def test_every_mirrored_column_exists_in_the_box_and_its_changes_are_recorded(
    noting, table, column
):
    await execute(noting, "DELETE FROM mirror_change")

    source = BY_NAME[table].source
    await execute(noting, f'UPDATE {source} SET "{column}" = "{column}"')  # noqa: S608

    assert {kind for (kind,) in read(noting, "SELECT kind FROM mirror_change")} == {table}


async def test_changes_to_columns_outside_the_mirror_are_not_recorded(noting):
    await execute(noting, "DELETE FROM mirror_change")

    await execute(noting, "UPDATE api_key SET last_used_at = 5")
    await execute(noting, "UPDATE reservation SET generation = 1, access_code = 'AAAA'")

    assert read(noting, "SELECT * FROM mirror_change") == []


async def test_every_mirrored_table_can_be_read_with_and_without_contacts(noting):
    for contacts in (True, False):
        seen = []
        await noting.live.database.write(changes.restart_copy)
        while batch := await noting.live.database.read(changes.find_batch, 500, contacts=contacts):
            seen += [(table.name, "Salma Idrissi" in rows) for table, rows in batch.rows]
            await noting.live.database.write(changes.advance, batch)
        assert seen == [(name, contacts and name == "reservation") for name in BY_NAME]


async def test_a_sequence_number_is_never_reused_after_copied_changes_were_deleted(noting):
    database, given = noting.live.database, []
    for _ in range(3):
        while batch := await database.read(changes.find_batch, 500, contacts=False):
            await database.write(changes.advance, batch)
        await execute(noting, "UPDATE slot SET name = name")
        given += [seq for (seq,) in read(noting, "SELECT seq FROM mirror_change")][-3:]

    assert given == sorted(set(given))


@pytest.mark.parametrize(
    "url",
    [
        "mysql://box@db/venues", "postgresql://box@db", "postgresql:///venues", "db.example/venues",
        "postgresql://box:pa/ss@db/venues", "postgresql://box@db/venues?sslmode=prefer",
        URL + "#x",
    ],
)  # fmt: skip
def test_an_invalid_or_unverified_mirror_url_is_refused_without_showing_its_password(url):
    with pytest.raises(Exception, match=r"mirror\.url") as refused:
        parse_settings(f'[mirror]\nurl = "{url}"', {})

    assert "hush" not in str(refused.value)
    assert "pa/ss" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "name"),
    [
        (URL, "db.example"),
        (
            URL.replace("db.example", "db1:5433,db2") + "?target_session_attrs=primary",
            "db1:5433,db2",
        ),
        ("postgresql:///venues?host=/run/postgresql", "/run/postgresql"),
    ],
)
def test_the_mirror_url_is_displayed_without_user_and_password(url, name):
    assert parse_settings(f'[mirror]\nurl = "{url}"', {}).mirror.url == url
    assert server_name(url) == name


async def test_without_a_user_in_the_url_the_box_comes_as_the_user_of_its_process(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("USER", "who-typed-sudo")
    came = []

    async def server(reader, writer):
        size = int.from_bytes(await reader.readexactly(4))
        came.append(await reader.readexactly(size - 4))
        writer.close()

    socket = tmp_path / ".s.PGSQL.5432"
    async with await asyncio.start_unix_server(server, socket):
        for user in ("", "box@"):
            with pytest.raises(Trouble):
                async with connected(f"postgresql://{user}/venues?host={tmp_path}"):
                    pass
    words = [packet[4:].split(b"\0") for packet in came]
    users = [line[line.index(b"user") + 1].decode() for line in words]
    assert users == [name_user(os.geteuid()), "box"]
