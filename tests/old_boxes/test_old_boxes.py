"""Boxes of all released versions can be opened, and their keys, links and passes still work."""

import json
import re
import tarfile

import apsw
import pyrage
import pytest

from appliance.backup.archive import open_backup
from appliance.backup.restore import restore_blank
from appliance.clock import newest_zone_database
from appliance.core.data_directory import DataDirectory
from appliance.core.settings import read_settings
from appliance.database.integrity import make_live
from appliance.database.migrate import migrate
from appliance.reservations.rows import sum_payments
from tests.app.portal.people import FROM_OURS, PASSWORD
from tests.clocks import StoppedClock
from tests.conftest import running_box
from tests.old_boxes.make import FOLDER, NOW, ask
from tests.unit.backup.making import KEY


def unpack(archive, folder):
    """Unpack an archive. Python 3.11.2 knows no `filter` for this, and newer ones demand it."""
    with tarfile.open(archive) as found:
        for member in found:
            path = folder / member.name
            if member.isdir():
                path.mkdir(parents=True, exist_ok=True)
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(found.extractfile(member).read())
                path.chmod(member.mode)


@pytest.fixture(params=sorted(FOLDER.glob("*.tar.xz")), ids=lambda path: path.name[:-7])
def known(request, tmp_path):
    """The ids, secrets and answers of the box in tmp_path, recorded when it was created."""
    unpack(request.param, tmp_path)
    unpack(tmp_path / "backup.tar", tmp_path / "box")
    return json.loads((tmp_path / "known.json").read_text("utf-8"))


@pytest.fixture
def directory(tmp_path, known):
    directory = DataDirectory(tmp_path / "box")
    for path in directory.databases:
        make_live(path)
    return directory


@pytest.fixture
async def running(directory):
    async with serving(directory) as found:
        yield found


def serving(directory):
    """Run this program with the data and the settings of the old box."""
    settings = read_settings(directory.settings_file, {})
    return running_box(directory.root, StoppedClock(NOW), settings)


def schema_of(path):
    """Return the SQL of each table, index and trigger, without comments and blanks."""
    connection = apsw.Connection(str(path))
    found = connection.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL")
    schema = {name: re.sub(r"\s*(\W)\s*", r"\1", re.sub("--.*", "", sql)) for name, sql in found}
    connection.close()
    return schema


def keeps(old, new):
    """Whether the new answer contains the old one. New members are allowed."""
    if isinstance(old, dict):
        return all(name in new and keeps(value, new[name]) for name, value in old.items())
    if isinstance(old, list):
        return len(old) == len(new) and all(map(keeps, old, new))
    return old == new


def test_an_old_box_gets_the_schema_of_a_new_one(directory, tmp_path):
    """If this fails, add the change in schema.sql to MIGRATIONS, with new columns last."""
    migrate(tmp_path / "new.db", create=True)
    for path in directory.databases:
        migrate(path)
        assert schema_of(path) == schema_of(tmp_path / "new.db")


async def test_an_old_box_answers_partners_and_doors_as_before(running, known):
    now = await ask(running, known)

    assert {name for name, old in known["answers"].items() if not keeps(old, now[name])} == set()
    assert running.live.database.peek(sum_payments, known["paid"]) == 150


async def test_a_booking_of_an_old_box_is_replayed_and_its_hold_can_become_a_booking(
    running, known
):
    async def book(wish):
        return await running.call("POST", "/v1/reservations", json=wish, key=known["key"])

    status, answer, headers = await book(known["wish"])
    assert (status, headers["Idempotent-Replayed"]) == (200, "true")
    assert keeps(known["booked"], answer)

    hold = known["hold"]
    wish = {**known["wish"], "idempotencyKey": "now", "holdId": hold["holdId"]}
    wish |= {"tableId": hold["tableIds"][0], "slot": hold["slot"], "guests": hold["guests"]}
    assert (await book(wish))[0] == 201


async def test_an_old_terminal_gets_the_same_verdicts_on_old_passes_and_scans(running, known):
    async def scan(body):
        path = "/terminal/v1/scans"
        return (await running.call("POST", path, key=known["terminal"], json=body))[1]

    assert keeps(known["verdict"], await scan(known["scan"]))
    for result, code in known["passes"].items():
        assert (await scan({"scanId": f"now-{result}", "code": code}))["result"] == result


async def test_old_passwords_guest_links_and_webhook_secrets_still_work(running, known):
    form = {"name": "Yasmine", "password": PASSWORD}
    async with running.client.post(
        "/portal/sign-in", data=form, headers=FROM_OURS, allow_redirects=False
    ) as response:
        assert (response.status, response.headers["Location"]) == (303, "/portal")
    link = known["booked"]["guestAccessUrl"].removeprefix("https://box.example")
    async with running.client.get(link) as response:
        assert response.status == 200
    sql = "SELECT secret FROM endpoint WHERE id = :id"
    wrapped = running.live.database.peek(lambda reader: reader.value(sql, {"id": known["kind"]}))
    assert running.live.keyring.unwrap(wrapped).decode() == known["kind_secret"]


async def test_an_old_backup_restores_the_same_box(known, tmp_path):
    blank, zones = DataDirectory(tmp_path / "blank"), newest_zone_database()
    backup = tmp_path / "riad-atlas.tar.age"
    plain = (tmp_path / "backup.tar").read_bytes()
    backup.write_bytes(pyrage.encrypt(plain, [KEY.identity.to_public()]))
    with open_backup(backup) as file:
        restore_blank(file, KEY, blank, StoppedClock(NOW), zones, lambda *_: None)

    async with serving(blank) as restored:
        assert keeps(known["answers"], await ask(restored, known))
