"""The box: the live and test environments of one data directory."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from appliance.clock import DAY_MS, MINUTE_MS, BoxClock, ZoneDatabase
from appliance.core.data_directory import DataDirectory
from appliance.core.saved_settings import Changes
from appliance.core.settings import Settings
from appliance.core.tokens import EnvironmentName, Keyring, Tokens
from appliance.database.connection import Reader, Transaction
from appliance.database.database import Database
from appliance.database.integrity import check_before_serving
from appliance.database.migrate import migrate
from appliance.door.live_feed import Feed
from appliance.environment import Environment, Links, path_prefix
from appliance.scheduler import Job
from appliance.staff.audit_log import record_audit


@dataclass(slots=True, eq=False)
class Box:
    """The two environments and their shared dependencies.

    `save_settings` stores changed settings, and returns all that are then in force. It is None if
    the settings are given, as in the demo. `on_settings` is called with what `apply` puts in force.
    `relay_connected` is set while the box is connected to its relay.
    """

    live: Environment
    test: Environment
    settings: Settings
    clock: BoxClock
    tokens: Tokens
    zones: ZoneDatabase
    save_settings: Callable[[Changes], Settings] | None = None
    on_settings: list[Callable[[Settings], None]] = field(default_factory=list)
    relay_connected: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def environments(self) -> tuple[Environment, Environment]:
        """The live environment, then the test environment."""
        return self.live, self.test

    @property
    def directory(self) -> DataDirectory:
        """The data directory with both databases."""
        return DataDirectory(self.live.database.path.parent)

    def move(self, address: str, *others: str) -> None:
        """Set the address used in new links, and the box's other addresses on the LAN.

        Links already issued do not change.
        """
        for environment in self.environments:
            environment.links.address, environment.links.others = address, others

    def apply(self, settings: Settings) -> None:
        """Apply the settings that can change while the box runs.

        These are the ones that `appliance/core/saved_settings.py` stores. The addresses that the
        box listens on, and its limits, are those that it started with.
        """
        if settings == self.settings:
            return
        self.settings = settings
        for environment in self.environments:
            environment.settings = settings
            environment.links.app_url = settings.server.app_url
        for listener in self.on_settings:
            listener(settings)
        self.look_for_changes()  # also wakes the jobs that send emails and obtain certificates

    def look_for_changes(self) -> None:
        """Notify the listeners of both databases that another process may have changed rows."""
        for environment in self.environments:
            environment.database.look_for_changes()

    async def close(self) -> None:
        """Finish pending writes, then close both databases."""
        for environment in self.environments:
            environment.feed.close()
            await environment.database.close()


def open_box(
    directory: Path,
    master_key: bytes,
    settings: Settings,
    *,
    address: str,
    clock: BoxClock,
    tokens: Tokens,
    zones: ZoneDatabase,
    on_broken: Callable[[BaseException], None] | None = None,
) -> Box:
    """Migrate and open both databases in `directory`. Call this in a running event loop.

    `address` is the box's base URL on the network, without a trailing slash. `on_broken` is passed
    to each `Database`. Raises OperatorError if a database is missing, damaged or newer than the
    program.
    """
    names: tuple[EnvironmentName, ...] = ("live", "test")
    paths = {name: directory / f"{name}.db" for name in names}
    # Check and migrate both files before opening either database. If this fails, no database is
    # open yet, so there are no threads to stop.
    for path in paths.values():
        check_before_serving(path)
        migrate(path)

    def environment(name: EnvironmentName) -> Environment:
        database = Database(paths[name], clock, tokens, zones, on_broken)
        return Environment(
            name=name,
            database=database,
            keyring=Keyring(master_key, name),
            settings=settings,
            links=Links(address, settings.server.app_url, path_prefix(name)),
            feed=Feed(database),
        )

    box = Box(environment("live"), environment("test"), settings, clock, tokens, zones)
    newest = box.live.database.peek(find_heartbeat)
    if newest is not None:
        clock.believe(newest)
    return box


def find_heartbeat(reader: Reader) -> int | None:
    """Return the newest instant of this database that was believed, in ms since 1970, or None."""
    return reader.one(int, "SELECT at FROM heartbeat")


def write_heartbeat(tx: Transaction, *, is_believed: bool = True) -> None:
    """Write to the database, and unless `is_believed` is False, store the time as believed."""
    sql = """INSERT INTO heartbeat (id, at) VALUES (1, :now)
             ON CONFLICT (id) DO UPDATE SET at = iif(:is_believed, :now, at)"""
    tx.execute(sql, {"now": tx.now, "is_believed": is_believed})


def confirm_clock(tx: Transaction, actor: str) -> None:
    """Store that the machine's clock is right. `actor` has the same format as in `record_audit`."""
    write_heartbeat(tx)
    record_audit(tx, actor, "clock_confirmed")


def heartbeat_job(database: Database) -> Job:
    """Return the job that writes a heartbeat once a day, and soon after something was stored."""

    def next_due(reader: Reader) -> int:
        newest = reader.value("SELECT at FROM history ORDER BY seq DESC LIMIT 1") or 0
        stored, now = find_heartbeat(reader) or 0, reader.now
        if stored > now:  # a time server set the clock back
            return 0
        return stored + (MINUTE_MS if stored < newest <= now else DAY_MS)

    async def run() -> None:
        await database.write(write_heartbeat)

    return Job("heartbeat", database, next_due, run, needs_clock=True)
