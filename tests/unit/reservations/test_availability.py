"""Which source blocks a table (interface, section 2.4), compared with counting minutes."""

from hypothesis import given
from hypothesis import strategies as st

from appliance.reservations.holds import Hold
from appliance.reservations.search import find_availability
from appliance.venue.model import Slot, Table, interval

DINNER = Slot("a", "Dîner", "19:30", "22:00", tuple(range(7)))
LATE = Slot("b", "Soirée", "22:00", "01:00", tuple(range(7)))
ENDS_AT = "06:00"
SOURCES = ("platform", "manual", "partner")


def a_table(number: str, *, bookable: bool = True) -> Table:
    return Table(number, number, number, 2, 4, 500, "standard", bookable)


def find(holds, slot, *, bookable=True):
    wanted = interval(slot, ENDS_AT)
    [found] = find_availability([a_table("T1", bookable=bookable)], holds, wanted)
    return found.available, found.blocked_by


def test_a_table_out_of_service_is_unavailable_without_a_blocking_source():
    assert find([], DINNER, bookable=False) == (False, None)
    assert find([Hold("T1", 0, 2880, "manual", 1)], DINNER, bookable=False) == (False, None)


HOLDS = st.lists(
    st.tuples(st.sampled_from(["T1", "T2"]), st.integers(0, 50), st.integers(1, 20),
              st.sampled_from(SOURCES))
    .map(lambda h: Hold(h[0], h[1] * 30, (h[1] + h[2]) * 30, h[3], 1))
)  # fmt: skip


@given(HOLDS, st.none() | st.sampled_from([DINNER, LATE]))
def test_the_blocking_source_is_that_of_the_first_overlapping_hold(holds, slot):
    wanted = set(range(*interval(slot, ENDS_AT)))
    sharing = [
        hold.source for hold in holds
        if hold.table_id == "T1" and wanted & set(range(hold.starts, hold.ends))
    ]  # fmt: skip

    assert find(holds, slot) == (not sharing, sharing[0] if sharing else None)
