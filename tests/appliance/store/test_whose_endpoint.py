"""Whose key registered an endpoint: an older box knows it from its security log."""

import apsw
import pytest

from appliance.store import migrate as migrate_module
from appliance.store.migrate import list_migrations, migrate

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


@pytest.fixture
def old(tmp_path, clock, monkeypatch):
    """A database of the first schema."""
    path = tmp_path / "live.db"
    with monkeypatch.context() as patch:
        patch.setattr(migrate_module, "list_migrations", lambda: list_migrations()[:1])
        assert migrate(path, clock, create=True) == 1
    connection = apsw.Connection(str(path))
    connection.execute(OLD)
    connection.close()
    return path


def test_an_upgrade_finds_who_registered_each_endpoint(old, clock):
    assert migrate(old, clock) == list_migrations()[-1][0]

    connection = apsw.Connection(str(old))
    rows = dict(connection.execute("SELECT id, lineage FROM endpoint"))
    restricted = list(connection.execute("SELECT DISTINCT own_refs FROM endpoint"))
    connection.close()
    assert rows == {
        "by-key": "k1", "by-its-successor": "k1", "by-staff": None, "nobody-knows": None,
    }  # fmt: skip
    assert restricted == [(0,)]
