"""A database for each test: the migrated file, and an open `Database`."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from appliance.clock import newest_zone_database
from appliance.core.tokens import Tokens
from appliance.database.database import Database
from appliance.database.migrate import migrate
from tests.clocks import StoppedClock


@pytest.fixture
def path(tmp_path: Path, clock: StoppedClock) -> Path:
    """An empty live.db with the newest schema."""
    found = tmp_path / "live.db"
    migrate(found, create=True)
    return found


@pytest.fixture
def broken() -> list[BaseException]:
    """The failures after which the database acknowledges nothing."""
    return []


@pytest.fixture
async def database(
    path: Path, clock: StoppedClock, broken: list[BaseException]
) -> AsyncIterator[Database]:
    """An open database with the file `path`."""
    opened = Database(path, clock, Tokens(), newest_zone_database(), broken.append)
    yield opened
    await opened.close()
