"""Counting an evening without reading its guests."""

from appliance.model.totals import Count, Totals
from appliance.store.connection import Reader


def count_evening(reader: Reader, date: str) -> Totals:
    """The totals of that evening."""
    sql = """SELECT coalesce(sum(guests) FILTER (WHERE holds), 0), count(*) FILTER (WHERE holds),
                    coalesce(sum(arrived), 0), count(*) FILTER (WHERE arrived > 0)
             FROM (SELECT guests, arrived, status NOT IN ('cancelled', 'declined') AS holds
                   FROM reservation WHERE date = :date)"""
    people, holders, arrived, parties = reader.row(sql, {"date": date}) or (0, 0, 0, 0)
    return Totals(Count(people, holders), Count(arrived, parties))
