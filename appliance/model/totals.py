"""The totals of an evening: whom the door expects, and who has arrived."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Count:
    """So many people, in so many reservations."""

    people: int
    reservations: int


@dataclass(frozen=True, slots=True)
class Totals:
    """`expected` counts those who hold a table, `arrived` the people who are in."""

    expected: Count
    arrived: Count
