"""A box with guests in its own directory, and the object that makes its backups."""

import asyncio
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path

from appliance.backup.create import Maker
from appliance.backup.recovery_key import RecoveryKey, keep_recovery_key
from appliance.box import open_box
from appliance.clock import newest_zone_database
from appliance.core.data_directory import DataDirectory
from appliance.core.files import atomic_write
from appliance.core.settings import Settings
from appliance.core.tokens import Tokens
from appliance.reservations.create import enter_by_staff
from tests.builders import TONIGHT, a_booking, table_id
from tests.clocks import StoppedClock, box_clock
from tests.conftest import MASTER_KEY, furnished_template

KEY = RecoveryKey("AGE-SECRET-KEY-1VRFGD3D0G7QD5NC7X62SAGL6UY5RAWJHSG23L73FTNZEH6PLEXMSXG37G9")
KEY_TEXT = KEY.text


@dataclass
class BoxDirectory:
    """The data directory of a stopped box."""

    directory: DataDirectory
    clock: StoppedClock = field(default_factory=StoppedClock)

    @property
    def root(self) -> Path:
        return self.directory.root


def a_box_with_guests(folder, guests=10):
    """Create Riad Atlas in `folder`, with a recovery key and some live reservations."""
    directory = DataDirectory(folder / "box")
    directory.make_folders()
    for template in furnished_template().iterdir():
        (directory.root / template.name).write_bytes(template.read_bytes())
    atomic_write(directory.master_key_file, MASTER_KEY)
    atomic_write(directory.settings_file, b"")
    keep_recovery_key(directory, KEY)
    made = BoxDirectory(directory)
    asyncio.run(_fill(made, guests))
    return made


async def _fill(made, guests):
    box = open_box(
        made.root, MASTER_KEY, Settings(), address="https://box.example",
        clock=box_clock(made.clock), tokens=Tokens(), zones=newest_zone_database(),
    )  # fmt: skip
    try:
        for number in range(guests):
            booking = a_booking(
                date=date.fromisoformat(TONIGHT) + timedelta(days=number // 5),
                table_id=table_id(f"T{number % 5 + 1}"),
            )
            await box.live.database.write(enter_by_staff, booking, actor="staff:1")
    finally:
        await box.close()


def a_maker(made, **changes):
    settings = changes.pop("settings", Settings())
    return Maker(made.directory, settings, made.clock, newest_zone_database(), **changes)
