"""Retention of contacts: who a guest was is forgotten some days after the evening."""

import asyncio
import logging
from collections.abc import Sequence
from datetime import date, timedelta

from appliance.actions.erase_guest import erase_past_guests
from appliance.errors import Trouble, Unavailable
from appliance.store.connection import Reader
from appliance.store.erasing import find_past_guests
from appliance.store.wiping import is_small
from appliance.upkeep.chores import last_ended_evening_now
from appliance.upkeep.retention import Retention

log = logging.getLogger(__name__)

_BATCH = 20
_FOUND = 5_000  # at a time: looking for them reads every row of the past
_PAUSE_SECONDS = 0.02


class ContactRetention(Retention):
    """At the start and each night: name, contacts and notes of evenings that are long past."""

    _unwiped = False

    async def _forget(self) -> None:
        days = self._settings.contact_days
        more = True
        while more and not self._closed:
            found = await self._database.read(_find, days)
            more = len(found) == _FOUND
            for start in range(0, len(found), _BATCH):
                await self._erase(found[start : start + _BATCH])
        if self._unwiped and not self._closed:
            self._unwiped = not await self._wipe()
            if self._unwiped and is_small(self._database.path):
                raise Unavailable  # in an hour, then; a large one waits for the next night

    async def _erase(self, reservation_ids: Sequence[str]) -> None:
        if self._closed:
            return
        await self._database.write(erase_past_guests, reservation_ids)
        self._unwiped = True
        await asyncio.sleep(_PAUSE_SECONDS)

    async def _wipe(self) -> bool:
        try:
            return await self._database.wipe()
        except Trouble as trouble:
            log.warning("what was forgotten stays between the rows for now: %s", trouble)
            return False


def _find(reader: Reader, days: int) -> list[str]:
    last: date = last_ended_evening_now(reader) - timedelta(days=days)
    return find_past_guests(reader, last, _FOUND)
