import json
import re
import zipfile
from importlib import resources

import pytest

from appliance.clock import SystemClock, newest_zone_database
from appliance.store.session import session
from appliance.store.venue import get_venue, list_slots, list_tables
from appliance.tokens import Tokens
from tests.appliance.commands.conftest import VENUE


def transaction(box, environment="live"):
    path = box.data / f"{environment}.db"
    return session(path, SystemClock(), Tokens(), newest_zone_database())


@pytest.mark.parametrize(
    "argv",
    [
        ("key", "list"),
        ("key", "create", "--environment", "live", "--name", "N"),
        ("terminal", "create", "--environment", "live", "--name", "N"),
        ("staff", "create", "--name", "N", "--role", "owner"),
        ("deliveries", "--environment", "live"),
    ],
)
def test_without_a_box_the_sentence_says_to_run_init(program, argv):
    assert "run venuebox init" in program.complaint(*argv)

    assert not program.data.exists()


@pytest.mark.parametrize("argv", [(), ("fly",), ("key",), ("serve", "--port", "65536")])
def test_wrong_usage_is_one_sentence_and_status_2(program, argv):
    program.complaint(*argv, status=2)


def test_an_accident_is_one_sentence_too(box):
    (box.data / "live.db").write_bytes(b"not a database" * 1000)

    box.complaint("key", "list")


@pytest.mark.parametrize("argv", [("key", "list"), ("key", "revoke", "x")])
@pytest.mark.parametrize(
    ("schema", "way_out"),
    [(0, "start the box with this version first"), (99, "install that version again")],
)
def test_a_database_of_another_version_is_left_to_serve(box, argv, schema, way_out):
    with transaction(box) as tx:
        tx.execute(f"PRAGMA user_version = {schema}")

    assert way_out in box.complaint(*argv)


@pytest.mark.parametrize("argv", [("key", "list"), ("key", "revoke", "x")])
def test_a_database_that_is_missing_is_named(box, argv):
    (box.data / "live.db").unlink()

    assert "live.db is missing" in box.complaint(*argv)


def test_a_bad_setting_is_named_before_anything_is_done(box):
    (box.data / "settings.toml").write_text("[server]\nport = 'http'\n")

    assert "server.port is 'http'" in box.complaint("serve")


def test_a_terminal_without_a_browser_gets_a_token(box):
    created = box.json("terminal", "create", "--environment", "test", "--name", "Entrée")

    assert set(created) == {"id", "token"}
    assert re.fullmatch(r"term_[0-9a-f]{64}", created["token"])


@pytest.mark.parametrize(("environment", "prefix"), [("live", ""), ("test", "/test")])
def test_a_pairing_link_carries_a_secret_of_its_own_behind_the_hash(box, environment, prefix):
    offered = box.json("terminal", "pair", "--environment", environment, "--name", "Entrée")

    assert re.fullmatch(r"[0-9]{8}", offered["code"])
    link = rf"http://127\.0\.0\.1:8080{prefix}/door#pair=[A-Za-z0-9_-]{{43}}"
    assert re.fullmatch(link, offered["url"])


def test_links_of_a_box_that_was_found_nowhere_yet_have_its_public_address(box):
    (box.data / "settings.toml").write_text('[server]\napp_url = "https://box.example"\n')

    created = box.json("staff", "create", "--name", "Yasmine", "--role", "owner")

    assert set(created) == {"id", "signInUrl"}
    assert re.fullmatch(
        r"https://box\.example/portal/welcome#[A-Za-z0-9_-]{43}", created["signInUrl"]
    )


@pytest.mark.parametrize("app_url", ["", "https://box.example"])
def test_links_for_the_house_lead_to_its_own_https_whatever_guests_are_given(box, app_url):
    (box.data / "address").write_text("http://192.168.1.20:8080")
    (box.data / "settings.toml").write_text(f'[server]\napp_url = "{app_url}"\n')

    person = box.json("staff", "create", "--name", "Yasmine", "--role", "owner")
    phone = box.json("terminal", "pair", "--environment", "test", "--name", "Entrée")

    assert person["signInUrl"].startswith("https://192.168.1.20:8443/portal/welcome#")
    assert phone["url"].startswith("https://192.168.1.20:8443/test/door#pair=")
    assert box("staff", "create", "--name", "Karim", "--role", "host") == 0
    assert ("https://box.example/portal/welcome#" in box.out) == bool(app_url)


def test_a_staff_link_is_stored_by_its_hash_alone(box):
    url = box.json("staff", "create", "--name", "Yasmine", "--role", "door")["signInUrl"]

    secret = url.partition("#")[2].encode()
    assert not any(secret in path.read_bytes() for path in box.data.rglob("*") if path.is_file())


def test_an_unknown_role_is_wrong_usage(box):
    box.complaint("staff", "create", "--name", "N", "--role", "king", status=2)


def test_deliveries_are_told_with_their_attempts_one_on_a_line(box):
    with transaction(box) as tx:
        tx.insert("endpoint", {"id": "e-1", "url": "https://x.example", "events": "[]",
                               "active": 1, "created_at": 0, "secret": b""})  # fmt: skip
        seq = tx.insert("event", {"type": "webhook.test", "occurred_at": 0})
        for id_, state in (("d-1", "pending"), ("d-2", "delivered")):
            delivery = tx.insert("delivery", {"id": id_, "endpoint_id": "e-1", "event_seq": seq,
                                              "state": state, "due_at": 60_000})  # fmt: skip
            for n, (outcome, status) in enumerate([("timeout", None), ("http_500", 500)], 1):
                tx.insert("attempt", {"delivery_seq": delivery, "n": n, "at": n * 1000,
                                      "duration_ms": 7, "phase": "done", "outcome": outcome,
                                      "http_status": status, "charged": 1})  # fmt: skip

    pending, delivered = box.json_lines("deliveries", "--environment", "live")

    assert pending == {
        "id": "d-1",
        "event": seq,
        "type": "webhook.test",
        "endpoint": "e-1",
        "state": "pending",
        "attempts": [
            {"at": "1970-01-01T00:00:01.000Z", "error": "timeout", "durationMs": 7},
            {"at": "1970-01-01T00:00:02.000Z", "status": 500, "durationMs": 7},
        ],
        "nextAttemptAt": "1970-01-01T00:01:00.000Z",
    }
    assert (delivered["state"], delivered["nextAttemptAt"]) == ("delivered", None)
    assert box.json_lines("deliveries", "--environment", "test") == []


def test_applying_a_file_matches_tables_by_number_in_both_environments(box, venue_file):
    with transaction(box) as tx:
        before = {table.number: table.id for table in list_tables(tx)}
        slot_id = list_slots(tx)[0].id
    text = VENUE.replace('"T2"', '"T3"').replace("Terrasse 1", "Le Belvédère")
    venue_file.write_text(text.replace("Riad Atlas", "Riad Toubkal"), "utf-8")

    assert box("venue", "apply", str(venue_file)) == 0, box.err

    for environment in ("live", "test"):
        with transaction(box, environment) as tx:
            assert get_venue(tx).name == "Riad Toubkal"
            shown = [(table.number, table.name, table.bookable) for table in list_tables(tx)]
        assert shown == [
            ("T1", "Le Belvédère", True),
            ("T3", "T3", True),
            ("T2", "T2", False),
        ]
    with transaction(box) as tx:
        after = {table.number: table.id for table in list_tables(tx)}
        assert list_slots(tx)[0].id == slot_id
    assert {number: after[number] for number in before} == before


def test_a_bad_file_applies_nothing(box, venue_file):
    venue_file.write_text(VENUE.replace("Riad Atlas", "Riad Toubkal") + "x = 1\n", "utf-8")

    assert "slots[0].x" in box.complaint("venue", "apply", str(venue_file))

    with transaction(box) as tx:
        assert get_venue(tx).name == "Riad Atlas"


@pytest.mark.proves("decision: Which tz database counts?")
def test_version_tells_what_runs_here(program):
    assert program("version") == 0

    kinds = [line.split()[0] for line in program.out.splitlines()]
    assert kinds == ["venuebox", "Python", "SQLite", "tz"]
    first = program.out.splitlines()[0]
    assert program("--version") == 0
    assert program.out.splitlines() == [first]


def test_a_newer_tz_database_in_the_data_directory_is_the_one_that_counts(box):
    rules = resources.files("tzdata.zoneinfo.Africa").joinpath("Casablanca").read_bytes()
    (box.data / "tz").mkdir()
    with zipfile.ZipFile(box.data / "tz" / "tzdata-2031.1-py2.py3-none-any.whl", "w") as wheel:
        wheel.writestr("tzdata/zoneinfo/Africa/Casablanca", rules)
        wheel.writestr("tzdata/zoneinfo/tzdata.zi", "# version 2031a\n")

    box("version")
    assert "tz database 2031a (own)" in box.out
    box("doctor", "--json")
    [found] = [c for c in json.loads(box.out)["checks"] if c["name"] == "time_zones"]
    assert found["status"] == "ok"
    assert "2031a (own)" in found["finding"]["en"]
    assert box("venue", "apply", str(box.data.parent / "venue.toml")) == 0
