"""The venue of the bench and the numbers of its plan.

60 tables, 12 slots of an hour and 700 dates leave half a million fresh bookings. Tonight
is filled with one-minute holds, 86,400 guests to scan, which no venue file could offer:
they are written as rows (past.py).
"""

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

TABLES = 60
FIRST_HOUR, LAST_HOUR = 12, 24
BOOKED_DATES = 700  # from the day after tomorrow on: the load books here
READ_DATES = 21  # after those: every table held for one slot, only read
GUESTS = 2


@dataclass(frozen=True)
class Plan:
    """Everything a load needs to know of one prepared box."""

    tables: Sequence[str]
    tonight: dt.date

    def load_dates(self) -> list[dt.date]:
        """The dates on which the load books."""
        return [self.tonight + dt.timedelta(days=2 + day) for day in range(BOOKED_DATES)]

    def read_dates(self) -> list[dt.date]:
        """The dates that availability and list read."""
        return [
            self.tonight + dt.timedelta(days=2 + BOOKED_DATES + day) for day in range(READ_DATES)
        ]

    def bookings(self) -> int:
        """How many bookings fit before two would collide."""
        return len(self.tables) * len(slots()) * BOOKED_DATES

    def write(self, folder: Path) -> dict[str, str]:
        """Writes the lists the scripts of lua/ read; their environment."""
        dates = self.read_dates()
        weeks = [(dates[n], dates[n + 6]) for n in range(0, READ_DATES, 7)]
        lists = {
            "TABLES": self.tables,
            "SLOTS": slots(),
            "DATES": [each.isoformat() for each in self.load_dates()],
            "EVENING": [f"/terminal/v1/evening?date={each}" for each in dates],
            "AVAILABILITY": [f"/v1/availability?date={each}" for each in dates],
            "LIST": [_list_of(first, last) for first, last in weeks],
        }
        for name, values in lists.items():
            (folder / name).write_text("\n".join(values) + "\n")
        return {f"BENCH_{name}": str(folder / name) for name in lists}


def slots() -> list[str]:
    """The start of each slot."""
    return [f"{hour:02d}:00" for hour in range(FIRST_HOUR, LAST_HOUR)]


def venue_file() -> str:
    """The venue as `venuebox init` reads it."""
    return "\n".join(_venue_lines())


def _list_of(first: dt.date, last: dt.date) -> str:
    return f"/v1/reservations?from={first}&to={last}&page=1"


def _venue_lines() -> Iterator[str]:
    yield 'name = "Riad Mesure"\nslug = "riad-mesure"\nstatus = "active"\nreservation_mode = "free"'
    yield 'auto_confirm = true\nrequest_expiry_hours = 24\ncurrency = "MAD"'
    yield 'time_zone = "Africa/Casablanca"\nevening_ends_at = "06:00"'
    for n in range(1, TABLES + 1):
        yield f'[[tables]]\nnumber = "T{n}"\nname = "Terrasse {n}"'
        yield "capacity_min = 1\ncapacity_max = 4\nminimum_spend = 500"
        yield 'type = "standard"\nbookable = true'
    for start in slots():
        end = f"{(int(start[:2]) + 1) % 24:02d}:00"
        yield f'[[slots]]\nname = "{start}"\nstart = "{start}"\nend = "{end}"'
        yield "days_of_week = [0, 1, 2, 3, 4, 5, 6]"
