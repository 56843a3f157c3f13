"""The evening board: tables down the page, slots across it, who sits where."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from appliance.model.calendar_entry import minute_of
from appliance.model.evening import day_of_week, interval, minutes, overlap
from appliance.model.reservation import Reservation
from appliance.model.venue import Slot
from appliance.store.connection import Reader
from appliance.store.readings import find_tonight
from appliance.store.reservations import list_evening
from appliance.store.totals import count_evening
from appliance.store.venue import find_closing, get_venue, list_slots, list_tables


@dataclass(frozen=True, slots=True)
class Column:
    """A slot of that evening; one that is no longer offered has no name, and holds nothing."""

    start: str
    name: str
    end: str
    holds: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Cell:
    """What a table holds for `span` columns from `column` on.

    `taken` are the hours of a party of another slot that runs into this one.
    """

    column: Column | None
    span: int
    reservations: tuple[Reservation, ...]
    taken: str | None = None

    @property
    def is_free(self) -> bool:
        """Whether the table can be given away then."""
        is_offered = self.column is None or self.column.holds is not None
        return is_offered and not self.reservations and self.taken is None


def read_board(
    reader: Reader, day: date | None, position: str, tables: frozenset[str] | None = None
) -> dict[str, Any]:
    """The board of `day`, else of tonight; only the rows of `tables` when they are given.

    `position` is where the live feed stood before this was read. A row's `place` counts the
    venue's tables; `waiting` are those that want an answer or a payment; `present` is the start of
    the slot that is on or comes next, None on another evening.
    """
    tonight, venue = find_tonight(reader), get_venue(reader)
    chosen = day or tonight
    everybody = [r for r in list_evening(reader, chosen.isoformat()) if r.holds]
    columns = _columns(list_slots(reader), everybody, chosen, venue.evening_ends_at)
    by_table: dict[str, list[Reservation]] = {}
    for reservation in everybody:
        by_table.setdefault(reservation.table_id, []).append(reservation)
    zone = reader.zones.zone(venue.time_zone)
    return {
        "day": chosen,
        "before": chosen - timedelta(days=1),
        "after": chosen + timedelta(days=1),
        "tonight": tonight,
        "columns": columns,
        "rows": [
            {
                "place": place,
                "table": table,
                "cells": list(_cells(columns, by_table.get(table.id, []))),
            }
            for place, table in enumerate(list_tables(reader))
            if (tables is None or table.id in tables) and (table.bookable or table.id in by_table)
        ],
        "waiting": [r for r in everybody if r.status in {"requested", "pending", "partial"}],
        "totals": count_evening(reader, chosen.isoformat()),
        "venue": venue.name,
        "now": reader.now,
        "position": position,
        "present": _present(columns, chosen, reader.now, zone) if chosen == tonight else None,
        "closing": find_closing(reader, chosen.isoformat()),
    }


def _columns(
    slots: Iterable[Slot], everybody: Iterable[Reservation], day: date, evening_ends_at: str
) -> tuple[Column, ...]:
    """The slots of that weekday, and those that somebody holds though they are offered no more."""
    weekday = day_of_week(day)
    known = {
        s.start: Column(s.start, s.name, s.end, interval(s, evening_ends_at))
        for s in slots
        if weekday in s.days_of_week
    }
    for reservation in everybody:
        if reservation.slot is not None:
            known.setdefault(reservation.slot, Column(reservation.slot, "", ""))
    ends = minutes(evening_ends_at)

    def order(column: Column) -> int:
        start = minutes(column.start)
        return start + (24 * 60 if start < ends else 0)  # after midnight is late, not early

    return tuple(sorted(known.values(), key=order))


def _present(columns: tuple[Column, ...], day: date, now: int, zone: ZoneInfo) -> str | None:
    """The start of the first slot that is not over at `now`, else of the last one."""
    for column in columns:
        if column.holds is not None and now < minute_of(day, column.holds[1], zone):
            return column.start
    return columns[-1].start if columns else None


def _cells(columns: tuple[Column, ...], held: list[Reservation]) -> Iterable[Cell]:
    """A whole evening is one cell across all columns; it conflicts with every slot."""
    whole = tuple(r for r in held if r.slot is None)
    if whole or not columns:
        yield Cell(None, max(1, len(columns)), whole)
        return
    for column in columns:
        here = tuple(r for r in held if r.slot == column.start)
        yield Cell(column, 1, here, _taken(column, held))


def _taken(column: Column, held: Iterable[Reservation]) -> str | None:
    """`19:30–22:00` of the first party of another slot that sits there in this one."""
    wanted = column.holds
    if wanted is None:
        return None
    others = [r for r in held if r.slot != column.start and overlap((r.starts, r.ends), wanted)]
    first = min(others, key=lambda r: r.starts, default=None)
    return None if first is None else f"{_clock(first.starts)}–{_clock(first.ends)}"


def _clock(minute: int) -> str:
    return f"{minute // 60 % 24:02d}:{minute % 60:02d}"
