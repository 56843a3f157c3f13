"""Making a backup: two at once, a large box, and errors of the disk."""

import errno
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import apsw
import pytest

from appliance.backup.archive import open_backup
from appliance.backup.catalogue import list_backups, read_record
from appliance.backup.recovery_key import ensure_recovery_key, recovery_key_file
from appliance.backup.restore import restore_blank
from appliance.core.data_directory import DataDirectory
from appliance.core.errors import OperatorError
from appliance.core.files import exclusive
from appliance.database.connection import open_connection
from appliance.database.integrity import count_rows, list_faults
from tests.unit.backup.making import KEY, a_box_with_guests, a_maker
from web.main import main


@pytest.fixture
def made(tmp_path):
    return a_box_with_guests(tmp_path)


def shelf_of(made):
    return made.root / "backups"


def test_two_simultaneous_backups_are_both_made_one_after_the_other(made, monkeypatch):
    monkeypatch.setattr("appliance.backup.catalogue.rotate", lambda *_: [])
    stages, together = {"one": [], "two": []}, threading.Barrier(2)

    def make(name):
        together.wait(60)
        maker = a_maker(made, tell=lambda *_: stages[name].append(time.monotonic()))
        return maker.make()[0]

    with ThreadPoolExecutor(2) as pool:
        paths = set(pool.map(make, stages))

    assert len(paths) == 2
    assert set(list_backups(shelf_of(made))) == paths
    assert set(shelf_of(made).iterdir()) == paths
    assert list(made.directory.tmp.iterdir()) == []
    assert read_record(made.root).trouble == ""
    one, two = sorted(stages.values(), key=lambda each: each[-1])
    assert one[-1] < two[1], "the second begins its work when the first has ended"


def test_a_backup_to_an_unmounted_volume_is_refused_with_the_reason(made, tmp_path, capsys):
    (tmp_path / "usb").mkdir()

    assert main(["backup", "--to", str(tmp_path / "usb"), "--data", str(made.root)], {}) == 0

    assert f"{tmp_path / 'usb'} is on the same drive as the box" in capsys.readouterr().err


def test_a_backup_gets_its_final_name_only_after_it_is_verified(made, monkeypatch):
    monkeypatch.setattr("appliance.backup.catalogue.rotate", lambda *_: [])
    seen = {}

    def look(what, *_):
        seen[what] = [path.name for path in shelf_of(made).iterdir()]

    path, _ = a_maker(made, tell=look).make()

    assert [name[0] + name[-5:] for name in seen["prove"]] == ["..part"]
    assert list(shelf_of(made).iterdir()) == [path]


def test_a_backup_that_waits_too_long_for_another_fails_with_the_reason(made, tmp_path):
    (tmp_path / "usb").mkdir()

    with exclusive(shelf_of(made), 1.0, "this"):
        with pytest.raises(OperatorError, match="another backup of this box was still running"):
            a_maker(made, patience=0.2).make()
        assert "another backup" in read_record(made.root).trouble
        path, _ = a_maker(made, patience=0.2).make(to=tmp_path / "usb")

    assert path.exists()
    a_maker(made, patience=0.2).make()
    assert read_record(made.root).trouble == ""


def test_simultaneous_first_requests_for_the_recovery_key_get_the_same_key(tmp_path):
    directory = DataDirectory(tmp_path / "box")
    directory.make_folders()

    with ThreadPoolExecutor(4) as pool:
        with exclusive(directory.root / "secrets", 1.0, "this"):
            asked = [pool.submit(ensure_recovery_key, directory) for _ in range(4)]
            time.sleep(0.3)
            assert not any(one.done() for one in asked)
        keys = {one.result(10).text for one in asked}

    assert len(keys) == 1


def test_a_box_that_lost_its_recovery_key_makes_no_backup_with_a_new_one(made, capsys):
    a_maker(made).make()
    recovery_key_file(made.directory).unlink()

    with pytest.raises(OperatorError, match="backup kit --new"):
        a_maker(made).make()
    assert main(["backup", "kit", "--new", "--data", str(made.root)], {}) == 0

    assert ensure_recovery_key(made.directory).rows[1] in capsys.readouterr().out
    a_maker(made).make()


GROW = """
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 45000)
INSERT INTO audit_log (at, actor, what, detail)
SELECT :at + i, 'console', 'grown', json_object('note', hex(randomblob(400))) FROM n
"""


@pytest.mark.slow
def test_a_database_larger_than_the_cache_is_backed_up_and_restored(made, tmp_path):
    live = made.root / "live.db"
    connection = open_connection(live)
    connection.execute(GROW, {"at": made.clock.now()})
    connection.close()
    assert live.stat().st_size > 40 << 20, "who writes keeps 32 MiB in memory"

    maker = a_maker(made)
    path, manifest = maker.make()

    assert manifest.reservations == 10
    other = DataDirectory(tmp_path / "other")
    with open_backup(path) as file:
        restore_blank(file, KEY, other, made.clock, maker.zones, lambda _done, _all: None)
    restored = other.database("live")
    assert list_faults(restored) == []
    before = count_rows(live)
    assert count_rows(restored) == before | {"audit_log": before["audit_log"] + 1}


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (apsw.IOError("disk I/O error"), r"disk I/O error\)\. Run venuebox doctor"),
        (apsw.FullError("database or disk is full"), "the disk is full"),
    ],
)
def test_an_sqlite_error_during_a_backup_is_reported_and_recorded(made, monkeypatch, error, said):
    def fail(_path):
        raise error

    monkeypatch.setattr("appliance.backup.create.describe_venue", fail)

    with pytest.raises(OperatorError, match=said):
        a_maker(made).make()

    record = read_record(made.root)
    assert record.trouble is not None
    assert record.at is None
    assert list((made.root / "backups").glob("*.tar.age")) == []


@pytest.mark.parametrize("name", ["secrets/known_hosts", "backups/.riad.part"])
def test_an_unreadable_file_of_the_box_is_named_in_the_error(made, monkeypatch, name):
    file = made.root / name
    file.parent.mkdir(exist_ok=True)
    if file.parent.name == "secrets":
        file.write_text("nas ssh-ed25519 AAAA")

    def fail(*_):
        raise PermissionError(errno.EACCES, "Permission denied", str(file))

    monkeypatch.setattr("appliance.backup.archive.write_archive", fail)

    with pytest.raises(OperatorError) as refused:
        a_maker(made).make()

    named = file if file.exists() else file.parent
    assert f"{named}. " in str(refused.value)
    assert str(named) in read_record(made.root).trouble


@pytest.mark.parametrize(("spare", "begun"), [(15, []), (17, ["live.db"])])
def test_a_backup_that_would_use_the_disk_space_for_bookings_is_refused(
    made, monkeypatch, spare, begun
):
    copies = []

    def copy(path, _copy):
        copies.append(path.name)
        raise OSError(errno.ENOSPC, "No space left on device")

    size = sum((made.root / f"{name}.db").stat().st_size for name in ("live", "test"))
    monkeypatch.setattr("appliance.backup.create.copy_database", copy)
    monkeypatch.setattr(
        "shutil.disk_usage", lambda _path: SimpleNamespace(free=size + (spare << 20))
    )

    with pytest.raises(OperatorError):
        a_maker(made).make()

    assert copies == begun
    assert read_record(made.root).trouble


def frequent(made):
    return a_maker(made).make(is_frequent=True)


def test_a_frequent_backup_can_be_restored_like_a_nightly_one(made, tmp_path):
    path, manifest = frequent(made)
    other = DataDirectory(tmp_path / "other")

    with open_backup(path) as file:
        restored = restore_blank(file, KEY, other, made.clock, a_maker(made).zones, lambda *_: None)

    assert restored == manifest
    assert restored.reservations == 10
    assert not list_faults(other.database("live"))


@pytest.mark.parametrize("place", [200, 5000, -1])
def test_a_frequent_backup_that_the_disk_corrupted_is_discarded(made, monkeypatch, place):
    def changed(path):
        content = bytearray(path.read_bytes())
        content[place] ^= 1
        path.write_bytes(content)
        return open_backup(path)

    monkeypatch.setattr("appliance.backup.archive.open_backup", changed)

    with pytest.raises(OperatorError):
        frequent(made)

    assert list_backups(shelf_of(made)) == []
    assert read_record(made.root).latest is None


def test_a_frequent_backup_with_missing_rows_is_discarded(made, monkeypatch):
    monkeypatch.setattr("appliance.backup.restore.count_rows", lambda _: {})

    with pytest.raises(OperatorError):
        frequent(made)

    assert read_record(made.root).latest is None
