"""Install the releases that the relay stages for this box, at night, if the owner allows it."""

import asyncio
import io
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec

from appliance.backup.targets import connect_relay
from appliance.box import Box
from appliance.core.errors import OperatorError
from appliance.core.files import atomic_file
from appliance.database.connection import Reader
from appliance.environment import own_version
from appliance.jobs.nightly import next_night
from appliance.release import (
    HEAD_BYTES,
    UpdateRecord,
    check_manifest,
    conclude,
    is_newer,
    is_running,
    read_manifest,
    read_release_key,
    read_update_record,
    request_update,
)
from appliance.scheduler import Job, run_in_daemon_thread

if TYPE_CHECKING:
    import asyncssh

log = logging.getLogger(__name__)

REPORT = "last-update.json"  # the file's name on the relay
_RELEASE = "relay.release"  # in the data directory; deleted after the update
_LATE_MS = 2 * 3_600_000  # an update may begin up to this long after the start of the quiet hour
_LOOK_MS = 60_000
_RELEASE_SECONDS = 3600.0
_REPORT_SECONDS = 60.0
_BLOCK = 1 << 20


class RelayUpdates:
    """Reports the latest update to the relay, and requests the installation of staged releases.

    Looks for a release in the quiet hour, which begins an hour after the nightly jobs. systemd
    installs the requested release, as it does after a request in the portal.
    """

    def __init__(
        self, box: Box, program: Path,
        can_install: Callable[[Path], bool], may_run: Callable[[], bool],
    ) -> None:  # fmt: skip
        self._box, self._root, self._can_install = box, box.directory.root, can_install
        self._program = program
        self._looked_at = box.clock.now()
        self._reported: UpdateRecord | None = None
        self.job = Job("relay updates", box.live.database, self._next_due, self.run, may_run)

    def _next_due(self, reader: Reader) -> int | None:
        if not self._box.settings.update.from_relay:
            return None
        record = read_update_record(self._root)
        if record is not None and record != self._reported:
            # If the update is still running, look again in a minute.
            is_over = not is_running(record, self._program, reader.now)
            return 0 if is_over else reader.now + _LOOK_MS
        return self._quiet_hour(reader)

    def _quiet_hour(self, reader: Reader) -> int:
        hour = (self._box.settings.backup.hour + 1) % 24
        return next_night(reader, self._looked_at, hour)

    async def run(self) -> None:
        """Report the latest update. In the quiet hour, also request the staged release.

        Raises OperatorError if the relay does not answer.
        """
        now = self._box.clock.now()
        due = await self._box.live.database.read(self._quiet_hour)
        may_install = due <= now < due + _LATE_MS and self._can_install(self._root)
        # In a thread, because a slow disk must not block the event loop.
        await run_in_daemon_thread(lambda: asyncio.run(self._call_relay(may_install=may_install)))
        if due <= now:
            self._looked_at = now

    async def _call_relay(self, *, may_install: bool) -> None:
        async with connect_relay(self._box.directory) as (sftp, _abort):
            await self._report(sftp)
            if may_install:
                await self._request(sftp)

    async def _report(self, sftp: "asyncssh.SFTPClient") -> None:
        record = read_update_record(self._root)
        if record is None or record == self._reported:
            return
        outcome = conclude(record, self._program, own_version(), self._box.clock.now())
        if outcome is None:
            return
        async with asyncio.timeout(_REPORT_SECONDS), sftp.open(REPORT, "wb") as file:
            await file.write(msgspec.json.encode(outcome))
        self._reported = record
        (self._root / _RELEASE).unlink(missing_ok=True)

    async def _request(self, sftp: "asyncssh.SFTPClient") -> None:
        """Fetch the staged release and request its installation.

        Does nothing if the release is not newer than this program, or if the latest update already
        tried to install it. Raises OperatorError if the release's signature is not valid, or if the
        file is larger than the signed release.
        """
        import asyncssh  # noqa: PLC0415 - takes 5 MB, and only boxes with a relay need it

        target, key = self._root / _RELEASE, read_release_key()
        try:
            async with (
                asyncio.timeout(_RELEASE_SECONDS),
                sftp.open(f"release/{os.uname().machine}", "rb") as file,
            ):
                head = cast("bytes", await file.read(HEAD_BYTES, 0))
                manifest = read_manifest(io.BytesIO(head), key)
                latest = read_update_record(self._root)
                was_tried = latest is not None and latest.version == manifest.version
                if was_tried or not is_newer(manifest.version, own_version()):
                    return
                check_manifest(manifest, own_version())
                with atomic_file(target) as copy:
                    await file.seek(0)
                    while block := cast("bytes", await file.read(_BLOCK)):
                        if copy.tell() + len(block) > manifest.size + HEAD_BYTES:
                            raise OperatorError("the release on the relay is too large")
                        copy.write(block)
        except asyncssh.SFTPNoSuchFile:  # nothing is staged for this box
            return
        log.warning("update: installing version %s, staged on the relay", manifest.version)
        request_update(self._root, str(target), self._box.clock.now())
