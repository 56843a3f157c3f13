"""Migrations: made whole or not at all, a copy kept, strangers and newer files refused."""

from pathlib import Path

import apsw
import pytest

from appliance.core.errors import OperatorError
from appliance.database import migrate as migrate_module
from appliance.database.integrity import read_schema_number
from appliance.database.migrate import list_migrations, migrate
from tests.clocks import StoppedClock


def test_migrations_are_numbered_without_gaps():
    numbers = [number for number, _ in list_migrations()]

    assert numbers == list(range(1, len(numbers) + 1))


def test_a_missing_database_is_never_replaced_by_an_empty_one(tmp_path: Path, clock: StoppedClock):
    with pytest.raises(OperatorError, match=r"live\.db is missing"):
        migrate(tmp_path / "live.db")

    assert not (tmp_path / "live.db").exists()


def test_a_newer_file_is_refused_untouched(path, clock):
    connection = apsw.Connection(str(path))
    connection.pragma("user_version", read_schema_number(path) + 1)
    connection.close()
    before = path.read_bytes()

    with pytest.raises(OperatorError, match="newer"):
        migrate(path)

    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "not a venuebox database"), (b"no database at all" * 100, "restore")],
    ids=["another program's", "damaged"],
)
def test_another_file_is_refused(tmp_path: Path, clock: StoppedClock, content, said):
    path = tmp_path / "live.db"
    if content is None:
        connection = apsw.Connection(str(path))
        connection.execute("CREATE TABLE songs (title)")
        connection.close()
    else:
        path.write_bytes(content)

    with pytest.raises(OperatorError, match=said):
        migrate(path)


OLD = """
INSERT INTO api_key (id, lineage, name, hash, prefix, last_four, scopes, created_at) VALUES
    ('k1', 'k1', 'One', x'01', 'svc', '1111', '', 0),
    ('k2', 'k1', 'One', x'02', 'svc', '2222', '', 0);
INSERT INTO endpoint (id, url, events, active, created_at, secret) VALUES
    ('by-key', 'https://a.example/', '[]', 1, 0, x'00'),
    ('by-its-successor', 'https://b.example/', '[]', 0, 0, x'00'),
    ('by-staff', 'https://c.example/', '[]', 1, 0, x'00'),
    ('nobody-knows', 'https://d.example/', '[]', 1, 0, x'00');
INSERT INTO security_log (at, actor, what, detail, hash) VALUES
    (1, 'key:k1', 'endpoint_registered', '{"endpoint":"by-key"}', x'00'),
    (2, 'key:k2', 'endpoint_registered', '{"endpoint":"by-its-successor"}', x'00'),
    (3, 'staff:s', 'endpoint_registered', '{"endpoint":"by-staff"}', x'00'),
    (4, 'key:k1', 'endpoint_deactivated', '{"endpoint":"nobody-knows"}', x'00');
"""


def test_an_upgrade_finds_in_the_log_who_registered_each_endpoint(tmp_path, clock, monkeypatch):
    path = tmp_path / "live.db"
    with monkeypatch.context() as patch:
        patch.setattr(migrate_module, "list_migrations", lambda: list_migrations()[:1])
        assert migrate(path, create=True) == 1
    connection = apsw.Connection(str(path))
    connection.execute(OLD)

    assert migrate(path) == list_migrations()[-1][0]

    rows = dict(connection.execute("SELECT id, lineage FROM endpoint"))
    restricted = list(connection.execute("SELECT DISTINCT own_refs FROM endpoint"))
    connection.close()
    assert rows == {
        "by-key": "k1", "by-its-successor": "k1", "by-staff": None, "nobody-knows": None,
    }  # fmt: skip
    assert restricted == [(0,)]
