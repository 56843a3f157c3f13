"""What a command dates its rows by: the time that the box goes by, not that of a doubtful clock."""

from contextlib import closing
from pathlib import Path

from appliance.clock import Clock, ZoneDatabase
from appliance.clock_trust import ClockMark, kernel_is_synchronised
from appliance.errors import Trouble
from appliance.steady_clock import SteadyClock
from appliance.store.clock_marks import find_clock_mark
from appliance.store.connection import Reader, open_for_command
from appliance.store.migrate import list_migrations
from appliance.store.unusable import UNUSABLE
from appliance.webhooks.uptime import SystemUptime


def tell_box_time(machine: Clock, path: Path, zones: ZoneDatabase, grace_ms: int) -> Clock:
    """The clock of the box whose live database is `path`, by what it has remembered of its own.

    Beside a clock that leapt, an invitation would be over before anybody opens it, and what is
    written would make the leap look right.
    """
    uptime = SystemUptime()
    clock = SteadyClock(machine, uptime.boot, uptime.milliseconds, kernel_is_synchronised, grace_ms)
    clock.remember(_find_mark(machine, path, zones))
    return clock


def _find_mark(machine: Clock, path: Path, zones: ZoneDatabase) -> ClockMark | None:
    """None of a database that cannot be used, too: whoever opens it says why."""
    try:
        with closing(open_for_command(path)) as connection:
            reader = Reader(connection, machine, zones)
            if reader.value("PRAGMA user_version") != list_migrations()[-1][0]:
                return None
            return find_clock_mark(reader)
    except (Trouble, *UNUSABLE):
        return None
