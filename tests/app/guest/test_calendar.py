import pytest


def fields(ics: str) -> dict[str, str]:
    """Return the unfolded content lines of a calendar by name. The first of a name counts."""
    assert ics.endswith("\r\n")
    lines = ics.replace("\r\n ", "").split("\r\n")[:-1]
    return dict(line.split(":", 1) for line in reversed(lines))


async def calendar(world, guest, language="fr", **changes):
    path = world.access(await world.reserve(**changes))
    answer = await guest.get(f"{path}/calendar.ics?lang={language}")
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "text/calendar; charset=utf-8"
    return (await answer.read()).decode()


async def test_the_calendar_entry_has_the_time_in_utc_and_the_place(world, guest):
    entry = fields(await calendar(world, guest, access_code="SVC-7K2M"))
    assert (entry["DTSTART"], entry["DTEND"]) == ("20261121T193000Z", "20261121T220000Z")
    assert entry["SUMMARY"] == "Table chez Riad Atlas"
    assert entry["LOCATION"] == "Riad Atlas"
    assert "\\nCode d’accès : SVC-7K2M\\n" in entry["DESCRIPTION"]
    assert entry["URL"].startswith("https://box.example/access/")


@pytest.mark.parametrize(
    ("date", "starts"),
    [
        ("2026-09-19", "20260919T183000Z"),  # the last evening with UTC+01
        ("2026-09-20", "20260920T193000Z"),  # the first evening with UTC+00, from then on
        ("2027-07-01", "20270701T193000Z"),
        ("2025-03-01", "20250301T193000Z"),  # Ramadan of 2025: UTC+00
    ],
)
async def test_the_calendar_time_uses_the_offset_of_that_day(world, guest, date, starts):
    entry = fields(await calendar(world, guest, date=date, link_expires_at=2**50))
    assert entry["DTSTART"] == starts


async def test_a_whole_evening_lasts_from_the_first_slot_to_the_end_of_the_last(world, guest):
    saturday = fields(await calendar(world, guest, slot=None))
    sunday = fields(await calendar(world, guest, slot=None, date="2026-11-22"))
    assert (saturday["DTSTART"], saturday["DTEND"]) == ("20261121T193000Z", "20261122T010000Z")
    assert sunday["DTSTART"] == "20261122T120000Z"


@pytest.mark.parametrize(
    ("status", "state", "method"),
    [("confirmed", "CONFIRMED", "PUBLISH"), ("requested", "TENTATIVE", "PUBLISH"),
     ("pending", "TENTATIVE", "PUBLISH"), ("cancelled", "CANCELLED", "CANCEL"),
     ("declined", "CANCELLED", "CANCEL")],
)  # fmt: skip
async def test_the_calendar_entry_has_the_state_of_the_reservation(
    world, guest, status, state, method
):
    entry = fields(await calendar(world, guest, status=status))
    assert (entry["STATUS"], entry["METHOD"]) == (state, method)


@pytest.mark.parametrize(("status", "alarms"), [("confirmed", 1), ("cancelled", 0)])
async def test_the_calendar_entry_has_an_alarm_only_while_the_table_is_held(
    world, guest, status, alarms
):
    ics = await calendar(world, guest, status=status)
    assert ics.count("BEGIN:VALARM\r\nACTION:DISPLAY\r\nTRIGGER:-PT2H\r\n") == alarms


async def test_a_change_keeps_the_calendar_entry_and_raises_its_sequence(world, guest):
    reservation = await world.reserve()
    path = f"{world.access(reservation)}/calendar.ics"
    before = fields((await (await guest.get(path)).read()).decode())

    await world.change(reservation, guests=5)
    after = fields((await (await guest.get(path)).read()).decode())

    assert before["UID"] == after["UID"]
    assert int(after["SEQUENCE"]) > int(before["SEQUENCE"])


async def test_calendar_lines_are_folded_at_75_octets_without_splitting_a_character(world, guest):
    ics = await calendar(world, guest, language="ar")
    assert all(len(line.encode()) <= 75 for line in ics.split("\r\n"))
    assert "طاولة في Riad Atlas" in fields(ics)["SUMMARY"]
