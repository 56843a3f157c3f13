"""Publish that this box serves, and stop it if another box has taken its place.

See `appliance.backup.fence` for the rules.
"""

import asyncio
import base64
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace

from appliance.alerts import note_alert
from appliance.backup import fence
from appliance.backup.catalogue import time_of
from appliance.backup.copies import read_copy_record
from appliance.backup.recovery_key import RecoveryKey, find_recovery_key
from appliance.box import Box
from appliance.core.errors import log_exception
from appliance.core.network import is_public
from appliance.database.connection import Reader
from appliance.scheduler import Job, run_in_daemon_thread
from appliance.venue.model import get_venue

log = logging.getLogger(__name__)

FENCED = "another_box_serves"
EVERY_MS = 60_000
# After a power cut, the boxes and the router start together, and the first checks may fail until
# the network is up. Therefore check more often at first.
FIRST_MS, _FIRST_CHECKS = 10_000, 3
_START_SECONDS = 5.0
_LOOK_EVERY = 5  # every fifth check also looks for boxes on the network
_SLACK_MS = 600_000  # longest time from copying the databases to the time in the backup's name

# Finds the markers of the venue's other boxes on the network.
Look = Callable[[RecoveryKey, fence.Installation], Awaitable[list[fence.Marker]]]


class FenceWatch:
    """Writes this box's marker to the backup target every minute, and looks for others every 5 min.

    If no target is set, it only looks for other boxes on the network. If the target cannot be
    reached, the box continues to serve. Before the first backup, which creates the recovery key,
    nothing is checked, because no other box can have this box's data yet.
    """

    def __init__(
        self,
        box: Box,
        look: Look | None,
        on_fenced: Callable[[fence.Fenced], None],
    ) -> None:
        """`on_fenced` must stop the box. `look` finds other boxes on the network."""
        self._box, self._directory, self._root = box, box.directory, box.directory.root
        self._look, self._on_fenced = look, on_fenced
        self._own = fence.ensure_installation(box.directory, box.tokens, box.clock.now())
        if self._own is None:
            log.error(
                "fence: installation.json is damaged, so this box does not look for other boxes"
            )
        self._key: RecoveryKey | None = None
        self._checked_at: int | None = None
        self._checks = 0
        self._trouble = ""
        self.job = Job("fence", box.live.database, self._next_due, self.check)

    async def check_at_start(self) -> None:
        """Check for at most 5 s before the box serves, or 15 s if it is not confirmed.

        If no backup target is set, only checks whether this box was fenced before. Raises Fenced
        if this box must not serve.
        """
        if self._own is not None and self._own.replaced_by is not None:
            fence.refuse_later(self._own.installation, [self._own.replaced_by])
        if not self._box.settings.backup.target:
            return
        # A box that is not confirmed looks at the network first.
        is_copy = self._own is not None and not self._own.confirmed
        try:
            async with asyncio.timeout(_START_SECONDS * (3 if is_copy else 1)):
                await self._check()
        except fence.Fenced:
            raise
        except TimeoutError:
            log.warning("fence: the backup target did not answer in time; the box serves anyway")
        except Exception as error:  # noqa: BLE001 - no other fault may keep the box from serving
            log_exception("fence: check before serving", error)

    async def check(self) -> None:
        """Check now. If this box must not serve, stop it."""
        try:
            await self._check()
        except fence.Fenced as error:
            self._on_fenced(error)

    def prove(self, nonce: str) -> str:
        """Return this box's marker in base64, as the answer to another box's request.

        The marker is encrypted with the request's `nonce` as context, so that the answer cannot be
        used for another request. Returns "" if this box has no recovery key, or if its installation
        is not confirmed. An unconfirmed box may be a copy, which must not stop the original.
        """
        key = self._find_key()
        if key is None or self._own is None or not self._own.confirmed:
            return ""
        marker = fence.Marker(self._own.installation, self._box.clock.now(), [], [])
        return base64.b64encode(fence.seal(marker, key, nonce)).decode()

    async def _check(self) -> None:
        database, self._checked_at = self._box.live.database, self._box.clock.now()
        self._checks += 1
        key, own = self._find_key(), self._own
        if key is None or own is None:
            return
        try:
            if own.confirmed:
                looked, wrote = await asyncio.gather(
                    self._look_around(key, own), self._exchange(key, own)
                )
            else:  # its marker would stop the box to which it has to give way
                looked = await self._look_around(key, own)
                wrote = await self._exchange(key, own)
        except fence.Fenced as error:
            if error.replaced_by is not None:
                by = replace(error.replaced_by, events=[])
                self._own = fence.store_if_possible(self._root, replace(own, replaced_by=by))
            await note_alert(database, FENCED, str(error))
            raise
        # A copy of a box on a different network cannot find the original. So if a backup target is
        # set, only the marker there shows whether the original still serves.
        is_alone = wrote if self._box.settings.backup.target else looked
        if is_alone and not own.confirmed:
            confirmed = fence.Stored(own.installation, own.machine)
            self._own = fence.store_if_possible(self._root, confirmed)
        await note_alert(database, FENCED, "")

    async def _look_around(self, key: RecoveryKey, own: fence.Stored) -> bool:
        """Look for other boxes on the network, if this is due in the current check.

        Returns whether it looked without an error. Logs errors instead of raising them, because the
        check at the target must go on. Raises Fenced if this box must not serve.
        """
        number, has_target = self._checks - 1, bool(self._box.settings.backup.target)
        is_due = number < _FIRST_CHECKS or number % _LOOK_EVERY == 0
        is_due = is_due or not (has_target and own.confirmed)
        if self._look is None or not is_due:
            return False
        try:
            others = await self._look(key, own.installation)
        except Exception as error:  # noqa: BLE001 - see above
            log_exception("fence: look at the network", error)
            return False
        fence.refuse_later(own.installation, others)
        fence.give_way(own, others)
        return True

    async def _exchange(self, key: RecoveryKey, own: fence.Stored) -> bool:
        """Write the marker to the target, if one is set. Logs each new failure once.

        Returns whether it was written. Raises Fenced if this box must not serve.
        """
        settings = self._box.settings.backup
        if not settings.target:
            return False
        venue_id, marker = await self._box.live.database.read(self._describe, own.installation)

        def is_silent(other: fence.Marker) -> bool:
            monotonic = self._box.clock.monotonic()
            self._own, silent = fence.note_marker(self._directory, own, other, monotonic)
            return silent

        try:
            await run_in_daemon_thread(
                lambda: asyncio.run(
                    fence.exchange(settings, self._directory, key, venue_id, own, marker, is_silent)
                )
            )
        except fence.Fenced:
            raise
        except Exception as error:  # noqa: BLE001 - a damaged key file must not hide the network
            if str(error) != self._trouble:
                log.warning("fence: the marker at the backup target was not updated: %s", error)
            self._trouble = str(error)
            return False
        self._trouble = ""
        return True

    def _describe(self, reader: Reader, own: fence.Installation) -> tuple[str, fence.Marker]:
        """Return the venue's id, and the marker with the events that the latest copy may lack."""
        links = self._box.live.links
        addresses = [links.address, *([links.app_url] if is_public(links.app_url) else [])]
        copied = time_of(read_copy_record(self._root).file)
        events = fence.list_events(reader, copied - _SLACK_MS)
        return get_venue(reader).id, fence.Marker(own, reader.now, addresses, events)

    def _find_key(self) -> RecoveryKey | None:
        self._key = self._key or find_recovery_key(self._directory)
        return self._key

    def _next_due(self, reader: Reader) -> int | None:
        """Return when the next check is due, in ms since 1970.

        Returns None if there is neither a target nor `look`. The first check is always due, because
        it also clears an alert that the previous process may have stored.
        """
        has_target = bool(self._box.settings.backup.target)
        if self._checked_at is None or self._checked_at > reader.now:
            return 0
        if not has_target and self._look is None:
            return None
        every = EVERY_MS if has_target else _LOOK_EVERY * EVERY_MS
        return self._checked_at + (FIRST_MS if self._checks < _FIRST_CHECKS else every)
