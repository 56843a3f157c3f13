"""The running totals of the evening that is listened to.

Counted once; then whatever changed is counted again, and the rest of the evening is not read.
"""

from datetime import date

from appliance.model.reservation import Reservation
from appliance.model.totals import Count, Totals
from appliance.store.connection import Reader
from appliance.store.totals import Share, list_shares

_NONE = Share(0, 0, holds=False)


class Tally:
    """Each reservation's share in the totals of one evening, and their sum."""

    def __init__(self, reader: Reader, evening: date) -> None:
        self.evening = evening
        self._day = evening.isoformat()
        self._shares: dict[str, Share] = {}
        self._expected = self._expected_people = self._arrived = self._arrived_people = 0
        for reservation_id, share in list_shares(reader, self._day).items():
            self._put(reservation_id, share)

    def count_again(self, reservation_id: str, found: Reservation | None) -> None:
        """That reservation changed: it is as `found` now, or no more."""
        share = _NONE
        if found is not None and found.date == self._day:
            share = Share(found.guests, found.arrived, found.holds)
        self._put(reservation_id, share)

    @property
    def totals(self) -> Totals:
        """The sum."""
        return Totals(
            Count(self._expected_people, self._expected), Count(self._arrived_people, self._arrived)
        )

    def _put(self, reservation_id: str, share: Share) -> None:
        before = self._shares.get(reservation_id, _NONE)
        self._expected += share.holds - before.holds
        self._expected_people += share.guests * share.holds - before.guests * before.holds
        self._arrived += (share.arrived > 0) - (before.arrived > 0)
        self._arrived_people += share.arrived - before.arrived
        if share == _NONE:
            self._shares.pop(reservation_id, None)
        else:
            self._shares[reservation_id] = share
