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


class Tally:
    """Scans by result, up to the latest. Their log is only ever added to: none is counted again."""

    def __init__(self) -> None:
        self._known: tuple[int, dict[str, int]] = (0, {})  # replaced as one: threads may share it

    def take(self, reader: Reader) -> dict[str, int]:
        """Count those that came since."""
        seq, known = self._known
        scans = dict(known)
        for result, count, last in reader.rows(
            "SELECT result, count(*), max(seq) FROM scan WHERE seq > :seq GROUP BY result",
            {"seq": seq},
        ):
            scans[result] = scans.get(result, 0) + count
            seq = max(seq, last)
        self._known = seq, scans
        return scans


def count_for_metrics(reader: Reader, tally: Tally) -> Counts:
    """As they are now; `tally` is kept from one call to the next."""
    return Counts(
        deliveries=dict(reader.rows("SELECT state, count(*) FROM delivery GROUP BY state")),
        scans=tally.take(reader),
        reservations=dict(reader.rows("SELECT status, count(*) FROM reservation GROUP BY status")),
        conditions=int(reader.value("SELECT count(*) FROM condition")),
    )
