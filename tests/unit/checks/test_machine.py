import os
from importlib import resources

import pytest

from appliance.clock import ZoneDatabase
from tests.clocks import StoppedClock
from tests.unit.checks.conftest import a_volume, english

MIB = 1 << 20


@pytest.mark.parametrize(
    ("mib", "status"), [(1024, "ok"), (1023, "warn"), (100, "warn"), (99, "fail"), (0, "fail")]
)
def test_a_volume_with_little_free_space_is_reported(ward, mib, status):
    ward.on(statvfs=lambda _: a_volume(free=mib * MIB))

    assert ward.status("disk") == status


def test_a_disk_that_became_read_only_is_reported(ward):
    ward.on(statvfs=lambda _: a_volume(flag=os.ST_RDONLY))

    found = ward.find("disk")

    assert found.status == "fail"
    assert "read-only" in english(found)


def test_a_time_zone_database_without_morocco_is_a_failure(ward, tmp_path):
    ward.become(zones=ZoneDatabase("2025b", "system", tmp_path))

    assert ward.status("time_zones") == "fail"


def test_a_time_zone_database_with_the_old_offset_of_morocco_is_a_failure(ward, tmp_path):
    (tmp_path / "Africa").mkdir()
    # Any zone that is at +01 in November will do.
    paris = resources.files("tzdata.zoneinfo.Europe").joinpath("Paris").read_bytes()
    (tmp_path / "Africa" / "Casablanca").write_bytes(paris)
    ward.become(zones=ZoneDatabase("2025b", "system", tmp_path))

    assert ward.status("time_zones") == "fail"


@pytest.mark.parametrize(("is_so", "status"), [(True, "ok"), (False, "warn")])
@pytest.mark.parametrize(
    ("what", "name"), [("is_synchronised", "clock"), ("has_way_out", "uplink")]
)
def test_an_unsynchronised_clock_or_a_missing_internet_connection_is_a_warning(
    ward, what, name, is_so, status
):
    ward.on(**{what: lambda: is_so})

    assert ward.status(name) == status


@pytest.mark.parametrize(
    ("instant", "is_synchronised", "status"),
    [
        ("2026-11-21T18:54:59Z", False, "fail"),
        ("2026-11-21T18:55:01Z", False, "warn"),
        ("2026-12-31T18:59:59Z", False, "warn"),
        ("2026-12-31T19:00:01Z", False, "fail"),
        ("2036-11-21T19:00:00Z", True, "ok"),
    ],
)
def test_a_clock_far_from_the_stored_times_is_a_failure_unless_it_is_synchronised(
    ward, instant, is_synchronised, status
):
    ward.become(clock=StoppedClock(instant))
    ward.on(is_synchronised=lambda: is_synchronised)
    ward.write("REPLACE INTO heartbeat (id, at) VALUES (1, 1795287600000)")

    assert ward.status("clock") == status
