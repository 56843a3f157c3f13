"""Counting an evening without reading its guests."""

import json
from typing import NamedTuple

from appliance.model.totals import Count, Totals
from appliance.store.connection import Reader


def count_evening(reader: Reader, date: str) -> Totals:
    """The totals of that evening."""
    row = reader.row(
        """SELECT coalesce(sum(guests) FILTER (WHERE holds), 0), count(*) FILTER (WHERE holds),
                  coalesce(sum(arrived), 0), count(*) FILTER (WHERE arrived > 0)
           FROM (SELECT guests, arrived, status NOT IN ('cancelled', 'declined') AS holds
                 FROM reservation WHERE date = :date)""",
        {"date": date},
    )
    expected_people, expected, arrived_people, arrived = row or (0, 0, 0, 0)
    return Totals(Count(expected_people, expected), Count(arrived_people, arrived))


class Share(NamedTuple):
    """What one reservation adds to the totals of its evening."""

    guests: int
    arrived: int
    holds: bool


def list_shares(reader: Reader, date: str) -> dict[str, Share]:
    """The shares of that evening, by reservation id."""
    # As one value: a row after the other would take turns with the event loop at each.
    text = reader.value(
        """SELECT json_group_array(json_array(
                    id, guests, arrived, status NOT IN ('cancelled', 'declined')))
           FROM reservation WHERE date = :date""",
        {"date": date},
    )
    return {id_: Share(guests, arrived, bool(holds))
            for id_, guests, arrived, holds in json.loads(text)}  # fmt: skip
