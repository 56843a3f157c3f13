"""The standby: fetch and test the latest backup at the target, and restore it to take over."""

import asyncio
import contextlib
import json
import logging
import secrets
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import apsw
import msgspec

from appliance.backup import archive, catalogue, fence
from appliance.backup.copies import find_latest
from appliance.backup.recovery_key import RecoveryKey, find_recovery_key, keep_recovery_key
from appliance.backup.restore import (
    Proven,
    prove,
    refuse_newer,
    restore_blank,
    scratch_folder,
)
from appliance.backup.targets import ensure_sftp_key, open_target
from appliance.clock import Clock, ZoneDatabase, format_instant
from appliance.core.data_directory import DataDirectory
from appliance.core.errors import OperatorError
from appliance.core.files import atomic_write, make_folder, write_json
from appliance.core.i18n import mark as _
from appliance.core.settings import BackupSettings
from appliance.core.tokens import Tokens
from appliance.database.connection import open_connection
from appliance.database.integrity import describe_venue

log = logging.getLogger(__name__)

_FILE = "standby.json"
LOST_FILE = "lost-events.json"
FRESH_SECONDS = fence.FRESH_MS // 1000  # a box with a marker younger than this may still serve
_KEPT = 2
_CODE_DIGITS = 10


@dataclass(frozen=True, slots=True)
class Source(BackupSettings):
    """The target from which a standby fetches backups, and the code that its page asks for.

    To start the take-over on the page, a person must type this code.
    """

    code: str = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class Ready:
    """A backup that has passed a trial restore."""

    file: str
    header: archive.Header
    reservations: int


@dataclass(frozen=True, slots=True)
class State:
    """The state of a standby. `trouble` is the latest error, or "".

    `seen_at` is when the target was last read and its latest backup was `ready`, in ms since 1970.
    """

    ready: Ready | None = None
    marker: fence.Marker | None = None
    seen_at: int | None = None
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Lost:
    """The events after the restored backup, as far as the other box's marker lists them.

    `told_at` is the time of the marker, in ms since 1970, or None if there is no marker.
    """

    events: list[fence.Event]
    unknown: int  # number of events after the backup that the marker no longer lists
    told_at: int | None


class Refused(OperatorError):
    """Raised if the other box may still serve.

    `message` is the translatable text. `values` contains the values of its placeholders.
    """

    def __init__(self, message: str, **values: object) -> None:
        super().__init__(message % values)
        self.message, self.values = message, values


def read_source(root: Path) -> Source | None:
    """Return the source of the standby in `root`, or None if `root` contains no standby.

    Raises OperatorError if the source cannot be read.
    """
    try:
        return msgspec.json.decode((root / _FILE).read_bytes(), type=Source)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise OperatorError(
            f"{root / _FILE} cannot be used ({error}). Run venuebox standby --from again."
        ) from None


def set_up(directory: DataDirectory, backup: BackupSettings, key: RecoveryKey) -> Source:
    """Make `directory` a standby of the box that copies its backups to `backup.target`.

    Raises OperatorError if the directory contains other data or a settings file.
    """
    if not directory.is_free() and read_source(directory.root) is None:
        raise OperatorError(
            f"{directory.root} is not empty. Specify an empty directory for the standby with "
            "--data."
        )
    if directory.settings_file.exists():
        raise OperatorError(
            f"{directory.settings_file} would prevent a take-over, which restores the box's "
            "settings from the backup. Remove the file."
        )
    directory.make_folders()
    keep_recovery_key(directory, key)
    if backup.target.startswith("sftp:"):
        ensure_sftp_key(directory)
    before = read_source(directory.root)
    code = before.code if before else str(secrets.randbelow(10**_CODE_DIGITS)).zfill(_CODE_DIGITS)
    source = Source(**asdict(backup), code=code)
    write_json(directory.root / _FILE, source)
    return source


class Standby:
    """Fetches and verifies backups, and restores the latest one. Call its methods in a thread."""

    def __init__(
        self, directory: DataDirectory, source: Source, clock: Clock, zones: ZoneDatabase
    ) -> None:
        """Raises OperatorError if the recovery key is missing."""
        key = find_recovery_key(directory)
        if key is None:
            raise OperatorError("the recovery key is missing. Run venuebox standby --from again.")
        self.directory, self.key, self.clock = directory, key, clock
        self.state = State()
        self._zones = zones
        self._source = source
        self._folder = directory.root / "backups"
        self._unusable: dict[str, str] = {}  # error, by file name; not fetched again
        self._known: dict[str, archive.Header] = {}  # headers at the target, by file name

    def refresh(self) -> State:
        """Read the target. If its latest backup is new, fetch and verify it.

        Returns the new state, which also contains the error, if any.
        """
        try:
            if self.state.ready is None:
                self._prove_kept()
            asyncio.run(self._refresh())
            self.state = replace(self.state, trouble="")
        except (OperatorError, OSError, apsw.Error) as error:
            self.state = replace(self.state, trouble=str(error))
        return self.state

    def _prove_kept(self) -> None:
        """Find the latest good backup among those that an earlier process fetched."""
        for path, _header in catalogue.list_backups(self._folder):
            with contextlib.suppress(OperatorError):
                self.state = replace(self.state, ready=self._prove(path))
                return

    async def _refresh(self) -> None:
        with scratch_folder(self.directory) as scratch:
            async with open_target(self._source, self.directory) as target:
                name, size = await find_latest(target, self._source.target, self._known)
                ready = self.state.ready
                is_new = name not in self._unusable and (ready is None or ready.file != name)
                if is_new:
                    await target.get(name, scratch / name, size)
                marker = await fence.read_marker(target, self._known[name].venue_id, self.key)
            self.state = replace(self.state, marker=marker)
            if name in self._unusable:
                raise OperatorError(self._unusable[name])
            if is_new:
                self._take(scratch / name)
            self.state = replace(self.state, seen_at=self.clock.now())

    def _take(self, path: Path) -> None:
        """Verify the fetched backup, store it, and delete all but the latest two."""
        try:
            ready = self._prove(path)
        except OperatorError as error:
            self._unusable[path.name] = str(error)
            raise
        path.chmod(0o600)  # as the box's own backups, so that its doctor does not complain later
        make_folder(self._folder)
        path.replace(self._folder / path.name)
        self.state = replace(self.state, ready=ready)
        for old, _header in catalogue.list_backups(self._folder)[_KEPT:]:
            old.unlink(missing_ok=True)

    def _prove(self, path: Path) -> Ready:
        with archive.open_backup(path) as file, scratch_folder(self.directory) as scratch:
            refuse_newer(archive.read_header(file)[0])
            proven = prove(file, self.key, scratch, self.clock, self._zones, upgrade=True)
        return Ready(path.name, proven.header, proven.reservations)

    def take_over(self, live: list[fence.Marker], *, force: bool) -> tuple[Proven, Lost]:
        """Restore the latest backup. The directory then contains a box that may serve.

        Call `refresh` first. `live` contains the markers of the venue's boxes that answer on the
        network now. Set `force` if a person has confirmed that the other box is off. Raises Refused
        if the other box may still serve, and OperatorError if there is no usable backup.
        """
        state = self.state
        refuse_while_serving(live, state, self.clock.now(), force=force)
        if state.ready is None:
            raise OperatorError(
                "there is no verified backup to take over with: "
                f"{state.trouble or 'none was found'}"
            )
        try:
            with archive.open_backup(self._folder / state.ready.file) as file:
                proven = restore_blank(
                    file, self.key, self.directory, self.clock, self._zones, lambda *_: None,
                    state.marker.installation if state.marker else None, confirmed=True,
                )  # fmt: skip
        except (OSError, apsw.Error) as error:
            raise OperatorError(
                f"the backup was not restored ({error}). If the disk is full, free some space. "
                "Then take over again."
            ) from None
        # The directory now contains a box that may serve, so nothing may fail from here on.
        lost = record_lost(self.directory, state.marker)
        with contextlib.suppress(OSError):  # the box can serve even if this file remains
            (self.directory.root / _FILE).unlink()
        return proven, lost


def refuse_while_serving(live: list[fence.Marker], state: State, now: int, *, force: bool) -> None:
    """Raise Refused if another box serves or may serve.

    With `force`, raise it only if `live` is not empty, i.e. if another box answers on the network.
    """
    if live:
        message = _("The box at %(address)s still serves this venue. Switch it off first.")
        raise Refused(message, address=live[0].addresses[0])
    if force:
        return
    if state.trouble or state.marker is None:
        raise Refused(
            _("It is not known whether the other box still serves, because the backup target does "
              "not tell. Switch the other box off, then confirm that it is off.")
        )  # fmt: skip
    seconds = max(now - state.marker.at, 0) // 1000
    if seconds < FRESH_SECONDS:
        raise Refused(
            _("The other box said %(seconds)s seconds ago that it serves. Switch it off, then "
              "confirm that it is off."), seconds=seconds,
        )  # fmt: skip


async def read_marker(
    directory: DataDirectory, backup: BackupSettings, key: RecoveryKey, now: int,
    venue_id: str | None = None,
) -> State:  # fmt: skip
    """Read the marker at the backup target. Return a state with the marker or the error.

    The default of `venue_id` is the venue of the box in `directory`.
    """
    if not backup.target:
        return State(trouble="backup.target is not set")
    venue_id = venue_id or describe_venue(directory.database("live"))[2]
    try:
        async with open_target(backup, directory) as target:
            marker = await fence.read_marker(target, venue_id, key)
    except OperatorError as error:
        return State(trouble=str(error))
    return State(marker=marker, seen_at=now)


def claim(
    directory: DataDirectory, state: State, live: list[fence.Marker], clock: Clock, *, force: bool
) -> None:
    """Allow the stopped box in `directory` to serve again after another box has taken its place.

    Raises Refused in the same cases as `Standby.take_over`, and OperatorError if the box is
    running.
    """
    running = (
        f"a box already runs in {directory.root}. If it serves, nothing is left to do. Otherwise "
        "stop it, then try again."
    )
    with directory.lock(running):
        refuse_while_serving(live, state, clock.now(), force=force)
        other = state.marker.installation if state.marker else None
        fence.renew_installation(directory.root, Tokens(), clock.now(), other, confirmed=True)


def record_lost(directory: DataDirectory, marker: fence.Marker | None) -> Lost:
    """Find the events in the marker that the restored box lacks, and write them to LOST_FILE.

    Logs an error instead of raising it, because the box is restored.
    """
    lost = Lost([], 0, None)
    try:
        if marker is not None:
            path = directory.database("live")
            with contextlib.closing(open_connection(path, writable=False)) as connection:
                [[last]] = connection.execute("SELECT coalesce(max(seq), 0) FROM event")
                first = marker.events[0].seq if marker.events else last
                columns = "SELECT seq, type, reservation_id, occurred_at FROM event"
                rows = connection.execute(f"{columns} WHERE seq >= ?", (first,))
                restored = {fence.Event(*row) for row in rows}
            # Do not compare only the numbers: after a take-over, two boxes give the same ones.
            events = [event for event in marker.events if event not in restored]
            unknown = max(events[0].seq - last - 1, 0) if events else 0
            lost = Lost(events, unknown, marker.at)
        atomic_write(directory.root / LOST_FILE, _lost_as_json(lost).encode())
    except (OSError, apsw.Error) as error:
        log.warning("standby: %s was not written: %s", LOST_FILE, error)
    return lost


def describe_lost(lost: Lost) -> list[str]:
    """Return lines for the console that describe what happened after the restored backup."""
    if lost.told_at is None:
        return ["It is not known what happened after the backup. Ask the partners."]
    count = len(lost.events) + lost.unknown
    lines = [f"events after the backup, which are lost: {count} (see {LOST_FILE})"]
    if lost.unknown:
        lines.append(f"  the details of the first {lost.unknown} are unknown")
    for event in lost.events:
        at = format_instant(event.at)
        lines.append(f"  {at}  {event.type}  {event.reservation_id or '-'}  event {event.id}")
    return [*lines, f"It is not known what happened after {format_instant(lost.told_at)}."]


def _lost_as_json(lost: Lost) -> str:
    events = [
        {
            "id": event.id,
            "type": event.type,
            "reservationId": event.reservation_id,
            "occurredAt": format_instant(event.at),
        }
        for event in lost.events
    ]
    told_at = None if lost.told_at is None else format_instant(lost.told_at)
    return json.dumps({"toldAt": told_at, "unknown": lost.unknown, "events": events}, indent=1)
