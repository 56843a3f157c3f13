"""Backups between the nightly backups, and copies of backups at the backup target."""

import asyncio

from appliance.alerts import list_alerts
from appliance.backup.catalogue import read_record
from appliance.backup.copies import Copier, UnusableCopy, read_copy_record
from appliance.backup.create import Maker, find_mark
from appliance.box import Box
from appliance.clock import DAY_MS
from appliance.core.errors import OperatorError
from appliance.database.connection import Reader
from appliance.jobs.nightly import DAMAGED, FIRST_MS, NO_BACKUP, note_alert, note_new_key
from appliance.scheduler import Job, run_in_daemon_thread

BACKUP_TARGET = "backup_target"
# Wait 50 times as long as the latest backup took, so that backups run at most 2 % of the time.
_REST = 50


class FrequentBackups:
    """Makes a backup every `backup.every_minutes` if the live database has changed.

    If backups are slow, waits longer, so that they run at most 2 % of the time.
    """

    def __init__(self, box: Box, busy: asyncio.Lock) -> None:
        """`busy` is the lock that prevents the nightly jobs from running at the same time."""
        self._box = box
        self._busy = busy
        self._first = box.clock.now() + FIRST_MS
        self.job = Job(
            "frequent backup", box.live.database, self._next_due, self.back_up,
            lambda: not busy.locked(),
        )  # fmt: skip

    async def back_up(self) -> None:
        """Make a backup. If that fails, store an alert and raise OperatorError."""
        box, database = self._box, self._box.live.database
        maker = Maker(box.directory, box.settings, box.clock, box.tokens, box.zones)
        async with self._busy:
            try:
                await run_in_daemon_thread(lambda: maker.make(is_frequent=True))
            except OperatorError as error:
                await note_alert(database, NO_BACKUP, f"no backup was made: {error}")
                raise
            await note_alert(database, NO_BACKUP, "")
            await note_new_key(database, box.directory)

    def _next_due(self, reader: Reader) -> int | None:
        """Return when the next backup is due, in ms since 1970.

        Returns None if frequent backups are switched off, and until the nightly jobs have made the
        first backup. When a backup is due, returns None if nothing has changed since the latest
        backup, or if the database is damaged: its backup must not replace a good one.
        """
        record = read_record(self._box.directory.root)
        minutes = self._box.settings.backup.every_minutes
        if record.latest is None or not minutes:
            return None
        wait = max(minutes * 60_000, round(record.seconds * _REST * 1000))
        due = max(min(record.latest, reader.now) + wait, min(self._first, reader.now + FIRST_MS))
        if due > reader.now:
            return due
        is_damaged = any(alert.name == DAMAGED for alert in list_alerts(reader))
        return None if is_damaged or find_mark(reader) == record.mark else due


class BackupCopies:
    """Copies each backup to `backup.target`, and once a week makes a trial restore of a copy."""

    def __init__(self, box: Box) -> None:
        self._database = box.live.database
        self._root = box.directory.root
        self._copier = Copier(box.directory, box.settings, box.clock, box.zones)
        self._first = box.clock.now() + FIRST_MS
        self.job = Job("backup copies", self._database, self._next_due, self.copy, first_retry=60.0)

    async def copy(self) -> None:
        """Copy the latest backup to the target, and make a trial restore if one is due.

        If that fails, raises OperatorError. Also raises an alert: at once if a copy cannot be
        restored, and after a day if the failures have another cause.
        """
        sentence = ""
        try:
            if self._copier.settings.backup.target:
                await run_in_daemon_thread(self._copier.run)
        except OperatorError as error:
            since = read_copy_record(self._root).failing_since or 0
            if isinstance(error, UnusableCopy) or self._database.clock.now() - since >= DAY_MS:
                sentence = f"backups are not safe at the backup target: {error}"
                await note_alert(self._database, BACKUP_TARGET, sentence)
            raise
        await note_alert(self._database, BACKUP_TARGET, "")

    def _next_due(self, reader: Reader) -> int | None:
        due = self._copier.next_due()
        if due is None:  # there is no target or no backup, so clear an earlier alert
            return 0 if any(a.name == BACKUP_TARGET for a in list_alerts(reader)) else None
        return max(due, min(self._first, reader.now + FIRST_MS))
