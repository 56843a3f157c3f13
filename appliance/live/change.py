"""A change as it is told to those who listen."""

from dataclasses import dataclass, field

from appliance.model.conflict import Conflict
from appliance.model.notices import DoorChanged
from appliance.model.reservation import Reservation
from appliance.model.totals import Totals


@dataclass(frozen=True, slots=True)
class Change:
    """Something to tell. `kind` is check-in, change, conflict, totals, reset or revoked.

    `position` is what a listener comes back with to hear what follows. `evening` is tonight's
    date, and `totals` are its. `reservation` is as it is now; `moved`: it may have been another
    evening's. `door` tells who came in, and where. `renderings` are kept for the next listener
    of the same kind by whoever renders them.
    """

    position: str
    kind: str
    evening: str = ""
    reservation: Reservation | None = None
    moved: bool = False
    door: DoorChanged | None = None
    conflict: Conflict | None = None
    totals: Totals | None = None
    renderings: dict[str, str] = field(default_factory=dict, compare=False, repr=False)

    @property
    def number(self) -> int:
        """Its place in this run of the box: positions are ordered by it."""
        return int(self.position.partition("-")[2])
