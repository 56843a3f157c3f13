"""Which time zone database is used, and its rules for Casablanca."""

from datetime import UTC, datetime, timedelta
from importlib import resources
from pathlib import Path

import pytest
import tzdata
from hypothesis import given
from hypothesis import strategies as st

from appliance import clock
from appliance.clock import (
    ZoneDatabase,
    format_instant,
    newest_zone_database,
    parse_instant,
)
from appliance.core.errors import OperatorError

CASABLANCA = newest_zone_database().zone("Africa/Casablanca")


@pytest.mark.parametrize(
    ("change", "hours"),
    [("2026-02-15T02:00:00", 0), ("2026-03-22T02:00:00", 1), ("2026-09-20T01:00:00", 0)],
    ids=["into Ramadan", "after it", "for good"],
)
def test_the_moroccan_offset_changes_exactly_at_the_documented_second_of_2026(
    change: str, hours: int
):
    at = datetime.fromisoformat(f"{change}+00:00")

    before = (at - timedelta(seconds=1)).astimezone(CASABLANCA).utcoffset()

    assert before == timedelta(hours=1 - hours)
    assert at.astimezone(CASABLANCA).utcoffset() == timedelta(hours=hours)


def test_the_moroccan_offset_never_changes_after_20_september_2026():
    day = datetime(2026, 9, 20, 1, tzinfo=UTC)
    offsets = {
        (day + timedelta(days=n)).astimezone(CASABLANCA).utcoffset() for n in range(24 * 366)
    }

    assert offsets == {timedelta(0)}


def a_system_database(root: Path, version_line: str) -> Path:
    """Create a zoneinfo directory as on Debian, with the rules of Kathmandu for Casablanca."""
    (root / "Africa").mkdir(parents=True)
    rules = resources.files("tzdata.zoneinfo.Asia").joinpath("Kathmandu").read_bytes()
    (root / "Africa" / "Casablanca").write_bytes(rules)
    (root / "tzdata.zi").write_text(version_line, "ascii")
    return root


@pytest.fixture
def with_system_database(tmp_path, monkeypatch):
    """Choose a database when the system's one has this first line."""

    def choose(version_line: str) -> ZoneDatabase:
        monkeypatch.setattr(clock, "_SYSTEM_ZONES", a_system_database(tmp_path, version_line))
        return newest_zone_database()

    return choose


def offset_in_november(database: ZoneDatabase) -> timedelta | None:
    day = datetime(2026, 11, 20, 20, tzinfo=UTC)
    return day.astimezone(database.zone("Africa/Casablanca")).utcoffset()


@pytest.mark.parametrize(
    "line",
    [*(f"# version {version}\n" for version in ("2025b", "1970a", tzdata.IANA_VERSION)),
     "", "2099a\n", "# 2099a\n", "# version\n", "# versioned 2099a\n"],
)  # fmt: skip
def test_a_system_time_zone_database_without_a_version_is_ignored(with_system_database, line):
    found = with_system_database(line)

    assert (found.version, found.origin) == (tzdata.IANA_VERSION, "packaged")
    assert offset_in_november(found) == timedelta(0)


@pytest.mark.parametrize("version", ["2026z", "2027a", "2040b"])
def test_a_newer_system_time_zone_database_is_used(with_system_database, version: str):
    found = with_system_database(f"# version {version}\nR x\n")

    assert (found.version, found.origin) == (version, "system")
    assert offset_in_november(found) == timedelta(
        hours=5, minutes=45
    )  # the rules of that directory


def test_the_packaged_time_zone_database_contains_the_rule_of_2026():
    assert tzdata.IANA_VERSION >= "2026c"
    packaged = ZoneDatabase(tzdata.IANA_VERSION, "packaged", None)

    assert offset_in_november(packaged) == timedelta(0)


@pytest.mark.parametrize(
    "name", ["Africa/Nowhere", "", "../../etc/passwd", "Africa", "zone1970.tab", "/etc/hostname"]
)
@pytest.mark.parametrize("origin", ["packaged", "system"])
def test_an_unknown_time_zone_is_reported_in_one_sentence(tmp_path: Path, name: str, origin: str):
    root = None if origin == "packaged" else a_system_database(tmp_path, "")

    with pytest.raises(OperatorError, match="unknown time zone"):
        ZoneDatabase("2026c", origin, root).zone(name)


@given(st.integers(0, 4_102_444_800_000))
def test_a_timestamp_is_iso_8601_in_utc_and_is_parsed_back(milliseconds: int):
    text = format_instant(milliseconds)

    assert len(text) == len("2026-11-21T19:30:00.000Z")
    assert text.endswith("Z")
    assert parse_instant(text) == milliseconds
