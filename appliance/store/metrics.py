"""Counts for whoever watches the box from outside."""

from dataclasses import dataclass

from appliance.store.connection import Reader


@dataclass(frozen=True, slots=True)
class Counts:
    """Of one database, as it is now: deliveries, scans and reservations by what became of them."""

    deliveries: dict[str, int]
    scans: dict[str, int]
    reservations: dict[str, int]
    conditions: int


def count_for_metrics(reader: Reader) -> Counts:
    """Counted by indexes where there are any; some milliseconds for a year of evenings."""
    return Counts(
        deliveries=dict(reader.rows("SELECT state, count(*) FROM delivery GROUP BY state")),
        scans=dict(reader.rows("SELECT result, count(*) FROM scan GROUP BY result")),
        reservations=dict(reader.rows("SELECT status, count(*) FROM reservation GROUP BY status")),
        conditions=int(reader.value("SELECT count(*) FROM condition")),
    )
