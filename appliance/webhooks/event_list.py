"""Events as a list, with a cursor: for partners without a receiver, and to catch up (section 4).

The writer commits events in the order of `seq`, so a cursor at a `seq` neither loses nor repeats
any. The cursor also names the event there: after a restore, another event may have its number.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from appliance.core.errors import field_invalid
from appliance.database.connection import Reader
from appliance.outbox import VENUE_UPDATED
from appliance.reservations.rows import find_reservations
from appliance.webhooks.deliveries import event_id_of
from appliance.webhooks.payload import describe_reservations, venue_data

KEPT_DAYS = 30
NOW = "now"  # a cursor after the latest event
_CURSOR = re.compile(r"([0-9]{1,16})-([0-9a-f]{8}|)")


class ListedEvent(NamedTuple):
    """A listed event. `data` is as in a webhook, but shows the reservation's current state."""

    event_id: str
    type: str
    occurred_at: int
    data: dict[str, Any]


def list_events(
    reader: Reader, after: str | None, types: Sequence[str], limit: int, lineage: str
) -> tuple[list[ListedEvent], str]:
    """Return up to `limit` events of `types` (all if empty) after the cursor, oldest first.

    Also return the cursor for the next call. Test events are left out. Raises ValidationError if
    the cursor is not one of this box, or if events after it have been deleted.
    """
    last = int(reader.value("SELECT max(seq) FROM event") or 0)
    start = last if after == NOW else _read_cursor(reader, after, last)
    sql = """SELECT seq, type, reservation_id, occurred_at FROM event
             WHERE seq > :start AND (reservation_id IS NOT NULL OR type = :venue)
                 AND (:types = '[]' OR type IN (SELECT value FROM json_each(:types)))
             ORDER BY seq LIMIT :limit"""
    bound = {"start": start, "types": json.dumps(list(types)), "limit": limit}
    rows = list(reader.rows(sql, {**bound, "venue": VENUE_UPDATED}))
    found = find_reservations(reader, {row[2] for row in rows if row[2]})
    described = describe_reservations(reader, list(found.values()), lineage, own_refs=True)
    states = dict(zip(found, described, strict=True))
    events = [
        ListedEvent(
            event_id_of(*row), row[1], row[3],
            {"reservation": states[row[2]]} if row[2] else venue_data(reader),
        )
        for row in rows
    ]  # fmt: skip
    return events, _cursor(reader, rows[-1][0] if len(rows) == limit else last)


def _read_cursor(reader: Reader, cursor: str | None, last: int) -> int:
    if cursor is None:
        return 0
    match = _CURSOR.fullmatch(cursor)
    seq = int(match[1]) if match else -1
    first = reader.value("SELECT min(seq) FROM event") or last + 1
    known = _cursor(reader, seq)
    if not first - 1 <= seq <= last or not (known == cursor or known.endswith("-")):
        raise field_invalid(
            "after",
            "not a cursor of this box, or over 30 days old; call with after=now, store next, then "
            "read the reservations.",
        )
    return seq


def _cursor(reader: Reader, seq: int) -> str:
    sql = "SELECT seq, type, reservation_id, occurred_at FROM event WHERE seq = :seq"
    row = reader.row(sql, {"seq": seq})
    return f"{seq}-{event_id_of(*row)[:8] if row else ''}"
