"""`venuebox guest`: export and erasure, with the box off."""

import json
from datetime import timedelta

import pytest

from appliance.clock import SystemClock
from appliance.privacy import read_list
from appliance.reservations.create import enter_by_staff
from appliance.venue.model import get_venue, tonight
from tests.builders import a_booking

EMAIL, PHONE = "zqxanthe@canary.example", "+212 699 424 242"


@pytest.fixture
def booked(box):
    """Three evenings of one guest and one of another; their ids."""
    ids = []
    with box.transaction() as tx:
        (table,) = tx.row("SELECT id FROM venue_table ORDER BY position")
        venue = get_venue(tx)
        first = tonight(SystemClock().now(), tx.zones.zone(venue.time_zone), venue.evening_ends_at)
        for n, email in enumerate((EMAIL, EMAIL.upper(), None, "omar@guest.example")):
            phone = PHONE if n < 3 else "+212 600 000 002"
            booking = a_booking(table_id=table, date=first + timedelta(days=n + 1),
                                customer_name="Zqxanthe" if n < 3 else "Omar",
                                customer_email=email, customer_phone=phone)  # fmt: skip
            ids.append(enter_by_staff(tx, booking, actor="staff:1").id)
    return ids


def names(box):
    with box.transaction() as tx:
        return [row[0] for row in tx.rows("SELECT customer_name FROM reservation ORDER BY seq")]


@pytest.mark.parametrize(
    ("who", "expected"),
    [
        (("--email", EMAIL), [0, 1]),
        (("--phone", "0699424242"), [0, 1, 2]),
        (("--reservation", 3), [3]),
    ],
)
def test_a_guest_is_exported_and_erased_by_what_is_known_of_them(box, booked, who, expected):
    argv = ("--environment", "live", who[0], booked[who[1]] if who[1] == 3 else who[1])

    assert box("guest", "export", *argv) == 0
    exported = json.loads(box.out)
    assert {each["id"] for each in exported["reservations"]} == {booked[n] for n in expected}
    answer = box.json("guest", "erase", *argv)

    assert set(answer["erased"]) == {booked[n] for n in expected}
    assert [name is None for name in names(box)] == [n in expected for n in range(4)]
    assert set(read_list(box.data, "live")) == set(answer["erased"])
    if expected == [0, 1, 2]:  # all that she booked: nothing of her is left in the files
        for path in (path for path in box.data.rglob("*") if path.is_file()):
            content = path.read_bytes().lower()
            traces = (b"zqxanthe", b"699 424", b"699424", b"canary")
            assert not any(trace in content for trace in traces), path


def test_where_the_box_is_busy_the_guest_is_erased_and_the_box_wipes(box, booked, monkeypatch):
    monkeypatch.setattr("appliance.privacy.wipe", lambda _path: False)

    assert box("guest", "erase", "--environment", "live", "--phone", PHONE) == 0

    again = box.json("guest", "erase", "--environment", "live", "--reservation", booked[0])
    assert again == {"erased": [booked[0]], "wiped": False}
