"""A simulated disk that loses unsynced writes, and a furnished venue on it."""

import logging

import apsw
import pytest

from appliance.api_keys import list_keys
from appliance.clock import newest_zone_database
from appliance.core.tokens import Tokens
from appliance.database.integrity import session
from appliance.door.terminals import get_terminal, issue_terminal
from tests.builders import _add_key
from tests.clocks import StoppedClock
from tests.conftest import furnished_template
from tests.promises.power_cut.vfs import ForgetfulVFS


@pytest.fixture(autouse=True)
def nothing_is_logged():
    """Disable logging: log records would keep exceptions, and with them whole disks, in memory."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture(scope="module")
def vfs():
    found = ForgetfulVFS()
    yield found
    found.unregister()


@pytest.fixture(scope="module")
def furnished(tmp_path_factory):
    """Return (database file, key, terminal) of a venue with one endpoint."""
    path = tmp_path_factory.mktemp("power") / "live.db"
    path.write_bytes((furnished_template() / "live.db").read_bytes())
    clock = StoppedClock("2026-11-21T19:00:00Z")
    with session(path, clock, Tokens(), newest_zone_database()) as tx:
        _add_key(tx, "svc_live_" + "0" * 48, ("reservations:write",), None)
        key = list_keys(tx)[0]
        terminal = get_terminal(tx, issue_terminal(tx, "Door")[0])
        tx.insert(
            "endpoint",
            {"id": tx.new_id(), "url": "https://partner.example/hook", "active": 1,
             "events": '["reservation.created","reservation.cancelled","reservation.checked_in"]',
             "created_at": tx.now, "secret": b"wrapped"},
        )  # fmt: skip
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return path.read_bytes(), key, terminal
