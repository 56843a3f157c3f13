"""`venuebox venue apply` on a box with coming reservations."""

from datetime import timedelta

import pytest

from appliance.actions.enter import enter_by_staff
from appliance.clock import SystemClock, newest_zone_database
from appliance.store.readings import find_tonight
from appliance.store.session import session
from appliance.store.venue import get_venue, list_tables
from appliance.tokens import Tokens
from tests.appliance.commands.conftest import VENUE
from tests.builders import a_booking

LATE = VENUE.replace('"19:30"', '"01:00"').replace('"22:00"', '"03:00"')


def transaction(box, environment):
    path = box.data / f"{environment}.db"
    return session(path, SystemClock(), Tokens(), newest_zone_database())


@pytest.mark.proves("decision: Tables, slots or rules that change under reservations?")
@pytest.mark.parametrize("environment", ["live", "test"])
def test_an_evening_that_would_end_across_a_booked_slot_is_applied_nowhere(
    box, venue_file, environment
):
    venue_file.write_text(LATE, "utf-8")
    assert box("venue", "apply", str(venue_file)) == 0
    with transaction(box, environment) as tx:
        day = find_tonight(tx) + timedelta(days=7)
        booking = a_booking(table_id=list_tables(tx)[0].id, date=day, slot="01:00")
        enter_by_staff(tx, booking, actor="staff:x")
    earlier = 'evening_ends_at = "00:30"\n' + LATE.replace("Riad Atlas", "Riad Toubkal")
    venue_file.write_text(earlier, "utf-8")

    assert "across midnight" in box.complaint("venue", "apply", str(venue_file))

    for each in ("live", "test"):
        with transaction(box, each) as tx:
            venue = get_venue(tx)
            assert (venue.name, venue.evening_ends_at) == ("Riad Atlas", "06:00")


def test_an_evening_that_ends_across_a_slot_nobody_holds_is_applied(box, venue_file):
    venue_file.write_text('evening_ends_at = "00:30"\n' + LATE, "utf-8")

    assert box("venue", "apply", str(venue_file)) == 0

    with transaction(box, "live") as tx:
        assert get_venue(tx).evening_ends_at == "00:30"
