"""One byte that changes by itself: in a database, in its log, in a backup (F9, G5).

A page of a database is found by its checksum when the box starts, and each night while it
runs; a log when the box starts; a backup by `venuebox verify`, and when it is made.
"""

import random
import shutil

import apsw
import pytest

from appliance.clock import newest_zone_database
from appliance.errors import Trouble
from appliance.store.connection import open_connection
from appliance.store.session import session
from appliance.store.snapshot import list_faults
from appliance.store.start_check import check_before_serving
from appliance.tokens import Tokens
from tests.appliance.backup.making import KEY_TEXT, a_box_with_guests, a_maker

FLIPS = 60


def flip(path, at, bit):
    """Change one bit of one byte."""
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1 << bit]))


@pytest.fixture(scope="module")
def furnished(tmp_path_factory):
    return a_box_with_guests(tmp_path_factory.mktemp("box"), guests=150)


def pages_by_kind(path):
    """A page number of each table and each index."""
    connection = open_connection(path, writable=False)
    try:
        rows = connection.execute(
            "SELECT type, rootpage FROM sqlite_schema WHERE rootpage > 0 ORDER BY rootpage"
        )
        found = {"table": [], "index": []}
        for kind, page in rows:
            found[kind].append(page)
        return found
    finally:
        connection.close()


@pytest.mark.proves("I7", "G5")
@pytest.mark.parametrize("seed", range(4))
def test_a_byte_of_any_page_is_found_at_the_start_and_at_night(furnished, tmp_path, seed):
    draw = random.Random(seed)
    source = furnished.root / "live.db"
    size = source.stat().st_size
    roots = pages_by_kind(source)
    places = [draw.randrange(size) for _ in range(FLIPS // 4)]
    for pages in roots.values():
        places += [(draw.choice(pages) - 1) * 4096 + draw.randrange(100, 4096) for _ in range(3)]
    path = tmp_path / "live.db"

    for at in places:
        shutil.copy(source, path)
        flip(path, at, draw.randrange(8))
        before = path.read_bytes()

        assert list_faults(path), f"byte {at} at night"
        with pytest.raises(Trouble, match=r"live\.db is damaged .* venuebox restore --latest"):
            check_before_serving(path)
        assert path.read_bytes() == before, "the evidence was touched"


def a_log(folder, source, commits=40):
    """A database with a log that was never folded, as a crash leaves it; its commits' ends."""
    live = folder / "source.db"
    shutil.copy(source, live)
    keep = open_connection(live)
    keep.execute("PRAGMA wal_autocheckpoint = 0")
    keep.execute("SELECT count(*) FROM venue").fetchall()
    ends = []
    for number in range(commits):
        keep.execute("BEGIN IMMEDIATE")
        keep.execute(
            "INSERT INTO heartbeat (id, at) VALUES (1, ?1) ON CONFLICT DO UPDATE SET at = ?1",
            (number,),
        )
        keep.execute("COMMIT")
        ends.append((live.with_name("source.db-wal")).stat().st_size)
    path = folder / "live.db"
    shutil.copy(live, path)
    shutil.copy(live.with_name("source.db-wal"), path.with_name("live.db-wal"))
    keep.close()
    return path, ends


def test_a_byte_of_the_log_is_found_before_anything_is_lost_silently(furnished, tmp_path):
    draw = random.Random(5)
    path, ends = a_log(tmp_path, furnished.root / "live.db")
    log = path.with_name("live.db-wal")
    base, logged = path.read_bytes(), log.read_bytes()

    for _ in range(FLIPS):
        path.write_bytes(base)
        log.write_bytes(logged)
        path.with_name("live.db-shm").unlink(missing_ok=True)
        flip(log, draw.randrange(32, ends[-3]), draw.randrange(8))
        hurt = log.read_bytes()

        with pytest.raises(Trouble, match="commits behind a damaged byte"):
            check_before_serving(path)
        assert log.read_bytes() == hurt


def test_a_byte_of_the_head_of_a_log_is_found(furnished, tmp_path):
    path, _ = a_log(tmp_path, furnished.root / "live.db")
    log = path.with_name("live.db-wal")
    base, logged = path.read_bytes(), log.read_bytes()

    for at in range(12, 32):
        path.write_bytes(base)
        log.write_bytes(logged)
        path.with_name("live.db-shm").unlink(missing_ok=True)
        flip(log, at, 3)

        with pytest.raises(Trouble, match="commits behind a damaged byte"):
            check_before_serving(path)


def test_a_log_that_a_power_cut_left_is_no_damage(furnished, tmp_path):
    """The last commit torn in its middle, in any way that a cut can: it was not acknowledged."""
    draw = random.Random(6)
    path, ends = a_log(tmp_path, furnished.root / "live.db")
    log = path.with_name("live.db-wal")
    base, logged = path.read_bytes(), log.read_bytes()

    for _ in range(20):
        path.write_bytes(base)
        path.with_name("live.db-shm").unlink(missing_ok=True)
        torn = bytearray(logged)
        for sector in range(ends[-2] // 512 + 1, len(torn) // 512):
            if draw.random() < 0.5:
                torn[sector * 512 : sector * 512 + 512] = bytes(512)
        log.write_bytes(bytes(torn[: draw.randrange(ends[-2], len(torn))]))

        check_before_serving(path)

        connection = open_connection(path)
        assert next(connection.execute("SELECT at FROM heartbeat"))[0] >= 38
        connection.close()


def test_a_sound_file_is_left_alone_and_a_reused_log_too(furnished, tmp_path):
    path = tmp_path / "live.db"
    shutil.copy(furnished.root / "live.db", path)
    zones = newest_zone_database()

    for number in range(3):
        with session(path, furnished.clock, Tokens(), zones) as tx:
            tx.execute("UPDATE venue SET request_expiry_hours = :n", {"n": number + 1})
        check_before_serving(path)
        assert list_faults(path) == []


@pytest.mark.proves("S26")
def test_a_byte_of_a_backup_is_found_and_the_good_one_stays(furnished, tmp_path):
    from appliance.backup.proof import open_backup, prove  # noqa: PLC0415
    from appliance.backup.recovery_key import parse_recovery_key  # noqa: PLC0415

    draw = random.Random(7)
    maker = a_maker(furnished)
    path, _ = maker.make()
    whole = path.read_bytes()
    hurt = tmp_path / "hurt.venuebox-backup"
    key = parse_recovery_key(KEY_TEXT)

    for _ in range(FLIPS):
        hurt.write_bytes(whole)
        flip(hurt, draw.randrange(len(whole)), draw.randrange(8))
        with pytest.raises(Trouble), open_backup(hurt) as file:
            prove(file, key, tmp_path, furnished.clock, newest_zone_database())
    for length in (0, 10, 500, len(whole) // 2, len(whole) - 16, len(whole) - 1):
        hurt.write_bytes(whole[:length])
        with pytest.raises(Trouble), open_backup(hurt) as file:
            prove(file, key, tmp_path, furnished.clock, newest_zone_database())


def test_a_damaged_database_makes_no_backup_and_lets_no_good_one_go(tmp_path):
    box = a_box_with_guests(tmp_path, guests=40)
    maker = a_maker(box)
    good, _ = maker.make()
    root = pages_by_kind(box.root / "live.db")["table"][3]
    flip(box.root / "live.db", (root - 1) * 4096 + 2000, 2)

    with pytest.raises(Trouble, match=r"live\.db is damaged"):
        maker.make()

    assert [path.name for path in good.parent.iterdir()] == [good.name]


def test_page_checksums_are_in_every_new_database(furnished):
    for name in ("live.db", "test.db"):
        raw = (furnished.root / name).read_bytes()
        assert raw[20] == 8, "bytes kept free at the end of each page for its checksum"
    assert apsw.vfs_names()[0] == "cksmvfs"
