"""The box: the live and test environments of one data directory."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from appliance.clock import BoxClock, Clock, ZoneDatabase
from appliance.core.data_directory import DataDirectory
from appliance.core.settings import Settings
from appliance.core.tokens import EnvironmentName, Keyring, Tokens
from appliance.database.database import Database
from appliance.database.integrity import check_before_serving
from appliance.database.migrate import migrate
from appliance.door.live_feed import Feed
from appliance.environment import Environment, Links, path_prefix


@dataclass(frozen=True, slots=True)
class Box:
    """The two environments and their shared dependencies."""

    live: Environment
    test: Environment
    settings: Settings
    clock: Clock
    tokens: Tokens
    zones: ZoneDatabase

    @property
    def environments(self) -> tuple[Environment, Environment]:
        """The live environment, then the test environment."""
        return self.live, self.test

    @property
    def directory(self) -> DataDirectory:
        """The data directory with both databases."""
        return DataDirectory(self.live.database.path.parent)

    @property
    def machine_clock(self) -> Clock:
        """The system clock without the box's corrections, for display."""
        return self.clock.machine if isinstance(self.clock, BoxClock) else self.clock

    def move(self, address: str, *others: str) -> None:
        """Set the address used in new links, and the box's other addresses in the house.

        Links already issued do not change.
        """
        for environment in self.environments:
            environment.links.address, environment.links.others = address, others

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
    clock: Clock,
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

    return Box(environment("live"), environment("test"), settings, clock, tokens, zones)
