"""Rows of `key_use`: how often each key called, by day."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from appliance.store.connection import Reader, Transaction
from appliance.store.keys import touch_key
from appliance.store.venue import get_venue

DAYS = 7


@dataclass(frozen=True, slots=True)
class KeyUse:
    """Calls that a key was let through for: today, and in the last seven days with today."""

    today: int = 0
    week: int = 0


def list_key_use(reader: Reader) -> Mapping[str, KeyUse]:
    """What was written of each key that called in the last seven days, by its id."""
    today = _day(reader, reader.now)
    sql = """SELECT key_id, sum(requests) FILTER (WHERE day = :today), sum(requests)
             FROM key_use WHERE day > :before AND day <= :today GROUP BY key_id"""
    before = (today - timedelta(days=DAYS)).isoformat()
    rows = reader.rows(sql, {"today": today.isoformat(), "before": before})
    return {key_id: KeyUse(of_today or 0, week) for key_id, of_today, week in rows}


def note_key_use(
    tx: Transaction, key_id: str, counted: Sequence[tuple[int, int]], *, just_now: bool = True
) -> None:
    """Note when a key was used, and how often on each of the venue's last seven days.

    `counted` are pairs of an instant (ms since 1970) and how many calls there were from it.
    Unless the last call was `just_now`, only the counts are written.
    """
    if just_now:
        touch_key(tx, key_id)
    for at, requests in counted:
        day = _day(tx, at)
        sql = """INSERT INTO key_use (key_id, day, requests) VALUES (:key_id, :day, :requests)
                 ON CONFLICT (key_id, day) DO UPDATE SET requests = requests + :requests"""
        tx.execute(sql, {"key_id": key_id, "day": day.isoformat(), "requests": requests})
        sql = "DELETE FROM key_use WHERE key_id = :key_id AND day < :before"
        tx.execute(sql, {"key_id": key_id, "before": (day - timedelta(days=DAYS)).isoformat()})


def _day(reader: Reader, at: int) -> date:
    zone = reader.zones.zone(get_venue(reader).time_zone)
    return datetime.fromtimestamp(at / 1000, UTC).astimezone(zone).date()
