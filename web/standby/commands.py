"""`venuebox standby`: run a standby for a box, and take over from that box."""

import argparse
import asyncio
from dataclasses import replace

from appliance.backup.fence import Marker, read_installation
from appliance.backup.recovery_key import find_recovery_key, parse_recovery_key
from appliance.backup.standby import (
    Source,
    Standby,
    State,
    claim,
    describe_lost,
    read_marker,
    read_source,
    set_up,
)
from appliance.backup.targets import ensure_sftp_key
from appliance.commands.backup import ask_key
from appliance.commands.console import Console
from appliance.core.data_directory import DataDirectory, wake_box
from appliance.core.errors import OperatorError
from appliance.core.settings import Settings
from appliance.database.integrity import describe_venue
from web.listeners import listen
from web.neighbours import find_venue_boxes
from web.serve import run_serve
from web.standby.server import StandbyServer, find_live, run_until_taken_over


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Run the standby until a signal arrives or the standby takes over.

    After a take-over, serve the restored box, in this process and at later starts.
    """
    directory = console.directory(arguments)
    if arguments.what:
        return _take_over(arguments, console, directory)
    if directory.holds_a_box():
        if arguments.source:
            raise OperatorError(f"{directory.root} contains a box. Specify another directory.")
        return run_serve(arguments, console)
    source = _find_source(arguments, console, directory)
    server = console.settings(directory).server
    host = arguments.host or server.host
    port = server.port if arguments.port is None else arguments.port
    standby = Standby(directory, source, console.clock, console.zones)
    if source.target.startswith("sftp:"):
        print(f"this machine's public key, for authorized_keys:\n{ensure_sftp_key(directory)}")
    print(f"take-over code, to type on the page: {source.code}", flush=True)

    def find_port() -> int:
        return console.settings(directory).server.port if arguments.port is None else port

    async def stand_by() -> bool:
        page = StandbyServer(standby, source.code, host, console.tokens, find_port)
        return await run_until_taken_over(page, standby, listener, console.environ)

    with listen(host, port) as listener:
        is_taken_over = asyncio.run(stand_by())
    return run_serve(arguments, console) if is_taken_over else 0


def _find_source(
    arguments: argparse.Namespace, console: Console, directory: DataDirectory
) -> Source:
    """Return the source of the backups. With --from, first store it and the recovery key."""
    source = read_source(directory.root)
    if arguments.source is None:
        if source is None:
            raise OperatorError(
                f"{directory.root} is not a standby yet. Specify the backup target with --from."
            )
        return source
    key = find_recovery_key(directory) if source is not None and arguments.key is None else None
    key = key or parse_recovery_key(ask_key(arguments.key, "recovery key:"))
    backup = replace(console.settings(directory).backup, target=arguments.source)
    return set_up(directory, backup, key)


def _take_over(arguments: argparse.Namespace, console: Console, directory: DataDirectory) -> int:
    settings = console.settings(directory)
    host = arguments.host or settings.server.host
    if directory.holds_a_box():
        return _claim(arguments, console, directory, settings, host)
    source = read_source(directory.root)
    if source is None:
        raise OperatorError(
            f"{directory.root} is not a standby. Run venuebox standby --from first."
        )
    standby = Standby(directory, source, console.clock, console.zones)
    standby.refresh()
    live = asyncio.run(find_live(standby, host, console.tokens))
    proven, lost = standby.take_over(live, force=arguments.force)
    is_running = wake_box(directory.wakeup_pipe)
    print(
        f"restored the backup of {proven.header.venue} from {proven.header.made_at} with "
        f"{proven.reservations} reservations. "
        + ("The box starts now." if is_running else "Start the box with venuebox serve.")
    )
    marker = standby.state.marker
    if marker is not None and marker.addresses:
        print(
            f"The other box was at {marker.addresses[0]}. Give this machine the same address, so "
            "that the phones at the door find it."
        )
    print(*describe_lost(lost), sep="\n")
    return 0


def _claim(
    arguments: argparse.Namespace, console: Console, directory: DataDirectory, settings: Settings,
    host: str,
) -> int:  # fmt: skip
    key = find_recovery_key(directory)
    if key is None:
        raise OperatorError(
            "this box has no recovery key, so no other box can have restored its data. Start this "
            "box with venuebox serve."
        )
    slug, now = describe_venue(directory.database("live"))[1], console.clock.now()

    async def look() -> tuple[State, list[Marker]]:
        state = await read_marker(directory, settings.backup, key, now)
        own = read_installation(directory.root)
        return state, await find_venue_boxes(state.marker, slug, host, key, console.tokens, own)

    state, live = asyncio.run(look())
    claim(directory, state, live, console.clock, force=arguments.force)
    print("this box may serve again with its own data. Start it with venuebox serve.")
    return 0
