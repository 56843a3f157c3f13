import pytest

from appliance.clock import newest_zone_database
from appliance.core.errors import OperatorError
from appliance.venue.venue_file import parse_venue_file

ZONES = newest_zone_database()
HEAD = 'name = "Riad Atlas"\nslug = "riad-atlas"\n'
TABLE = '[[tables]]\nnumber = "T1"\ncapacity_max = 4\n'
SLOT = '[[slots]]\nstart = "19:30"\nend = "22:00"\n'
LATE = '[[slots]]\nstart = "22:00"\nend = "07:00"\ndays_of_week = [5]\n'
EARLY = '[[slots]]\nstart = "06:00"\nend = "12:00"\n'


def parse(text):
    return parse_venue_file(text, ZONES)


def test_omitted_members_of_a_venue_file_have_their_documented_defaults():
    venue = parse(HEAD + TABLE + SLOT)

    assert (venue.status, venue.reservation_mode, venue.auto_confirm) == ("active", "free", True)
    assert (venue.currency, venue.time_zone) == ("MAD", "Africa/Casablanca")
    assert (venue.evening_ends_at, venue.request_expiry_hours) == ("06:00", 24)
    assert venue.policies is None
    assert (venue.tables[0].name, venue.tables[0].capacity_min) == ("T1", 1)
    assert (venue.tables[0].type, venue.tables[0].bookable) == ("standard", True)
    assert (venue.slots[0].name, venue.slots[0].days_of_week) == ("19:30", tuple(range(7)))


def test_an_empty_address_map_link_or_phone_number_is_stored_as_none():
    venue = parse(HEAD + 'address = " "\nmap_url = ""\nphone = ""\n' + TABLE)

    assert (venue.address, venue.map_url, venue.phone) == (None, None, None)


def test_a_slot_may_run_past_midnight_until_the_next_slot_begins():
    not_on_saturdays = EARLY + "days_of_week = [0, 1, 2, 3, 4, 5]\n"
    assert len(parse(HEAD + TABLE + LATE + not_on_saturdays).slots) == 2
    assert len(parse(HEAD + 'evening_ends_at = "07:00"\n' + TABLE + LATE + EARLY).slots) == 2


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("name = ", "the venue file cannot be read"),
        ('slug = "x"\n' + TABLE, "name is missing"),
        ('name = " "\nslug = "x"\n' + TABLE, "name is ' '"),
        ('name = "x"\nslug = "Riad Atlas"\n' + TABLE, "slug is 'Riad Atlas'"),
        (f'name = "x"\nslug = "{"a" * 64}"\n' + TABLE, "slug is 'aaa"),
        (HEAD + 'status = "closed"\n' + TABLE, "status is 'closed'"),
        (HEAD + 'reservation_mode = "x"\n' + TABLE, "reservation_mode is 'x'"),
        (HEAD + TABLE + 'name = ""\n', "tables[0].name is ''"),
        (HEAD + "request_expiry_hours = 0\n" + TABLE, "request_expiry_hours is 0"),
        (HEAD + 'currency = "dirham"\n' + TABLE, "currency is 'dirham'"),
        (HEAD + 'time_zone = "Africa/Fes"\n' + TABLE, "time_zone is "),
        (HEAD + 'time_zone = "../../etc/passwd"\n' + TABLE, "time_zone is "),
        (HEAD + 'evening_ends_at = "24:00"\n' + TABLE, "evening_ends_at is '24:00'"),
        (HEAD + 'evening_ends_at = "18:00"\n' + TABLE, "evening_ends_at is '18:00'"),
        (HEAD + TABLE + "[policies]\nsince = 2026-01-01\n", "policies in"),
        (HEAD + 'colour = "red"\n' + TABLE, "colour in the venue file is not a known field"),
        (HEAD, "tables is missing"),
        (HEAD + "[[tables]]\ncapacity_max = 4\n", "tables[0].number is missing"),
        (HEAD + '[[tables]]\nnumber = "T1"\n', "tables[0].capacity_max is missing"),
        (HEAD + TABLE + "capacity_min = 5\n", "tables[0].capacity_max is 4"),
        (HEAD + TABLE + "minimum_spend = -1\n", "tables[0].minimum_spend is -1"),
        (HEAD + TABLE + 'bookable = "yes"\n', "tables[0].bookable is 'yes'"),
        (HEAD + TABLE + "seats = 3\n", "tables[0].seats in the venue file is not a known"),
        (HEAD + TABLE + TABLE, "tables[1].number is 'T1'"),
        (HEAD + TABLE + '[[slots]]\nend = "22:00"\n', "slots[0].start is missing"),
        (HEAD + TABLE + '[[slots]]\nstart = "25:00"\nend = "22:00"\n', "slots[0].start is '25:00'"),
        (HEAD + TABLE + SLOT + "days_of_week = [7]\n", "slots[0].days_of_week is [7]"),
        (HEAD + TABLE + SLOT + "days_of_week = [1, 1]\n", "slots[0].days_of_week is [1, 1]"),
        (HEAD + TABLE + SLOT + SLOT, "slots[1].start is '19:30'"),
        (HEAD + TABLE + EARLY + LATE, "evening_ends_at is '06:00'"),
    ],
)
def test_each_error_in_a_venue_file_is_one_sentence_that_names_the_field(text, named):
    with pytest.raises(OperatorError) as caught:
        parse(text)

    sentence = str(caught.value)
    assert sentence.startswith(named)
    assert "\n" not in sentence


def test_two_slots_on_different_days_may_start_at_the_same_time():
    venue = parse(
        HEAD + TABLE + SLOT + "days_of_week = [5, 6]\n" + SLOT + "days_of_week = [0, 1, 2]\n"
    )

    assert [slot.days_of_week for slot in venue.slots] == [(5, 6), (0, 1, 2)]
