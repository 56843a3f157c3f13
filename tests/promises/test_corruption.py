"""One corrupted byte in a database, in its WAL or in a backup is detected.

Page checksums detect it in a database, at each start and each night. In the WAL it is detected at
the start, in the last commit by the watermark. In a backup, `venuebox verify` detects it, and the
check after its creation.
"""

import asyncio
import random
import shutil
import threading
from dataclasses import dataclass
from pathlib import Path

import apsw
import pytest

from appliance.backup.archive import open_backup
from appliance.backup.recovery_key import parse_recovery_key
from appliance.backup.restore import prove
from appliance.box import open_box
from appliance.clock import newest_zone_database
from appliance.core.errors import OperatorError
from appliance.core.settings import Settings
from appliance.core.tokens import Tokens
from appliance.database.connection import open_connection
from appliance.database.database import Database
from appliance.database.integrity import check_before_serving, list_faults, session
from appliance.database.migrate import PAGE_BYTES
from tests.clocks import box_clock
from tests.unit.backup.making import KEY_TEXT, MASTER_KEY, a_box_with_guests, a_maker

FRAME, PAGE = 24, PAGE_BYTES
ZONES = newest_zone_database()
FOUNDED_WITH = 24  # hours until a request expires
DAMAGED = "venuebox restore --latest"


def flip(path, at, bit):
    """Change one bit of one byte."""
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1 << bit]))


@pytest.fixture(scope="module")
def furnished(tmp_path_factory):
    return a_box_with_guests(tmp_path_factory.mktemp("box"), guests=60)


def pages_by_kind(path):
    """Return a page number of each table and each index."""
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


@pytest.mark.parametrize("name", ["live", "test"])
async def test_a_box_with_a_damaged_database_ends(furnished, tmp_path, name):
    folder = shutil.copytree(furnished.root, tmp_path / "box")
    flip(folder / f"{name}.db", PAGE + 200, 1)
    before = threading.active_count()

    with pytest.raises(OperatorError, match=f"{name}.db"):
        open_box(folder, MASTER_KEY, Settings(), address="https://box.example",
                 clock=box_clock(furnished.clock), tokens=Tokens(), zones=ZONES)  # fmt: skip

    assert threading.active_count() == before  # a thread would keep the process running


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2, 3))])
def test_a_byte_of_any_page_is_found_at_the_start_and_at_night(furnished, tmp_path, seed):
    draw = random.Random(seed)
    source = furnished.root / "live.db"
    size = source.stat().st_size
    places = [draw.randrange(size) for _ in range(15)]
    for pages in pages_by_kind(source).values():
        places += [(draw.choice(pages) - 1) * PAGE + draw.randrange(100, PAGE) for _ in range(3)]
    path = tmp_path / "live.db"

    for at in places:
        shutil.copy(source, path)
        flip(path, at, draw.randrange(8))
        before = path.read_bytes()

        assert list_faults(path), f"byte {at} at night"
        with pytest.raises(OperatorError, match=DAMAGED):
            check_before_serving(path)
        assert path.read_bytes() == before, "the evidence was touched"


@dataclass
class Left:
    """The files of a killed box, and the position of its last commit's frames."""

    folder: Path
    files: dict[str, bytes]
    last: range

    @property
    def path(self):
        return self.folder / "live.db"

    def put(self, **changed):
        """Write the files, with changes; None leaves a file out."""
        for each in self.folder.glob("live.db*"):
            each.unlink()
        for name, content in (self.files | changed).items():
            if content is not None:
                self.folder.joinpath(f"live.db{name}").write_bytes(content)

    def put_with_flip(self, at, bit, name="-wal"):
        changed = bytearray(self.files[name])
        changed[at] ^= 1 << bit
        self.put(**{name: bytes(changed)})
        return bytes(changed)

    def starts_of_frames(self):
        return range(self.last.start, self.last.stop, FRAME + PAGE)


def note(tx, number):
    tx.execute("UPDATE venue SET request_expiry_hours = :n", {"n": number + 1})
    for name in ("Salma", "Youssef", "Imane"):
        tx.insert(
            "staff",
            {"id": tx.new_id(), "name": f"{name} {number}", "role": "door", "created_at": number},
        )


async def leave(source, folder, clock, commits):
    """Write commits, and copy the files while the database is open."""
    path = folder / "live.db"
    shutil.copy(source, path)
    database = Database(path, clock, Tokens(), ZONES)
    log = path.with_name("live.db-wal")
    try:
        for number in range(commits):
            before = log.stat().st_size
            await database.write(note, number)
        names = ("", "-wal", "-watermark")
        files = {name: path.with_name(f"live.db{name}").read_bytes() for name in names}
    finally:
        await database.close()
    return Left(folder, files, range(max(before, 32), len(files["-wal"])))


@pytest.fixture(
    params=[1, pytest.param(2, marks=pytest.mark.slow), 12], ids=lambda n: f"{n} commits"
)
def left(request, furnished, tmp_path):
    made = asyncio.run(leave(furnished.root / "live.db", tmp_path, furnished.clock, request.param))
    assert len(made.starts_of_frames()) > 1
    return made


def places(left, draw):
    """Yield offsets: the WAL header, each field of the last commit's frames, and random ones."""
    yield from range(32)
    for start in left.starts_of_frames():
        yield from range(start, start + FRAME, 4)
        yield from (start + FRAME, start + FRAME + PAGE // 2, start + FRAME + PAGE - 1)
    for _ in range(20):
        yield draw.randrange(32, left.last.stop)


def test_a_changed_byte_or_a_missing_end_of_a_log_is_found(left):
    draw = random.Random(9)
    log = left.files["-wal"]
    for length in (len(log) - 1, left.last.start, 33, 32):
        left.put(**{"-wal": log[:length]})
        with pytest.raises(OperatorError, match=DAMAGED):
            check_before_serving(left.path)

    for at in places(left, draw):
        hurt = left.put_with_flip(at, draw.randrange(8))

        with pytest.raises(OperatorError, match=DAMAGED):
            check_before_serving(left.path)

        assert left.path.with_name("live.db-wal").read_bytes() == hurt, "the evidence was touched"
        assert left.path.read_bytes() == left.files[""]


def test_a_command_writes_nothing_over_a_damaged_log(left, furnished):
    hurt = left.put_with_flip(left.last.stop - 100, 3)

    with (
        pytest.raises(OperatorError, match=DAMAGED),
        session(left.path, furnished.clock, Tokens(), ZONES) as tx,
    ):
        note(tx, 7)

    assert left.path.with_name("live.db-wal").read_bytes() == hurt
    assert left.path.read_bytes() == left.files[""]


@pytest.mark.parametrize("what", ["box", "command"])
def test_nothing_is_built_on_a_log_that_the_disk_does_not_take(left, furnished, monkeypatch, what):
    """A start rewrites the WAL: after a failed fsync it may exist only in the page cache."""

    def fail(_handle):
        raise OSError(5, "Input/output error")

    def begin_command(path):
        with session(path, furnished.clock, Tokens(), ZONES) as tx:
            tx.new_id()

    left.put()
    monkeypatch.setattr("os.fsync", fail)

    with pytest.raises(OperatorError, match="cannot be written"):
        {"box": check_before_serving, "command": begin_command}[what](left.path)

    assert left.path.read_bytes() == left.files[""]
    assert left.path.with_name("live.db-wal").read_bytes() == left.files["-wal"]


def hours(path):
    connection = open_connection(path)
    try:
        return next(connection.execute("SELECT request_expiry_hours FROM venue"))[0]
    finally:
        connection.close()


def hours_of(left):
    left.put()
    check_before_serving(left.path)
    return hours(left.path)


def test_without_the_watermark_the_box_goes_on_with_what_can_be_read(left):
    """The last resort of docs/operations/backup.md."""
    newest = hours_of(left)
    left.put_with_flip(left.last.stop - 100, 3)
    left.path.with_name("live.db-watermark").unlink()

    check_before_serving(left.path)

    assert hours(left.path) == (newest - 1 or FOUNDED_WITH)


def test_a_sound_log_is_served_whatever_became_of_the_watermark(left):
    newest = hours_of(left)
    mark = left.files["-watermark"]
    for other in (
        None, b"", mark[:9], bytes(16), mark + b"more",
        *(mark[:at] + bytes([mark[at] ^ 4]) + mark[at + 1 :] for at in range(0, 16, 3)),
    ):  # fmt: skip
        left.put(**{"-watermark": other})

        check_before_serving(left.path)

        assert hours(left.path) == newest


def test_a_commit_that_a_power_cut_tore_is_no_damage(left):
    """It is behind the watermark, so it was not acknowledged."""
    draw = random.Random(4)
    left.put()
    connection = open_connection(left.path)
    connection.execute("UPDATE staff SET name = name || '!'")
    more = left.path.with_name("live.db-wal").read_bytes()
    connection.close()
    for _ in range(20):
        torn = bytearray(more[: draw.randrange(left.last.stop, len(more))])
        for sector in range(left.last.stop // 512 + 1, len(torn) // 512):
            if draw.random() < 0.5:
                torn[sector * 512 : sector * 512 + 512] = bytes(512)
        left.put(**{"-wal": bytes(torn)})

        check_before_serving(left.path)


def test_a_log_that_was_copied_back_cut_begun_anew_or_taken_away_is_no_damage(left, furnished):
    mark = left.files["-watermark"]
    left.put()
    with session(left.path, furnished.clock, Tokens(), ZONES) as tx:  # closing it runs a checkpoint
        note(tx, 50)
    left.path.with_name("live.db-watermark").write_bytes(mark)
    check_before_serving(left.path)

    left.put()
    connection = open_connection(left.path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    copied = {name: left.path.with_name(f"live.db{name}").read_bytes() for name in ("", "-wal")}
    assert copied["-wal"] == b""
    connection.execute("DELETE FROM staff")
    begun = {name: left.path.with_name(f"live.db{name}").read_bytes() for name in ("", "-wal")}
    connection.close()
    for files in (copied, begun, {"-wal": None}):
        left.put(**files)
        check_before_serving(left.path)


def test_what_another_sqlite_does_to_the_files_is_no_damage(left):
    """As by its command line: no checksums, own checkpoints, maybe another journal mode."""
    for statement in (
        "UPDATE venue SET request_expiry_hours = 5", "PRAGMA wal_checkpoint(RESTART)",
        "PRAGMA journal_mode = DELETE", "VACUUM",
    ):  # fmt: skip
        left.put()
        connection = apsw.Connection(str(left.path))
        connection.execute(statement).fetchall()
        connection.close()
        left.path.with_name("live.db-watermark").write_bytes(left.files["-watermark"])

        check_before_serving(left.path)


async def test_the_watermark_rises_with_every_commit_of_box_and_commands(furnished, tmp_path):
    shutil.copy(furnished.root / "live.db", tmp_path / "live.db")
    database = Database(tmp_path / "live.db", furnished.clock, Tokens(), ZONES)
    index = tmp_path / "live.db-watermark"
    seen = []
    try:
        for number in range(6):
            if number % 2:
                await database.write(note, number)
            else:
                with session(database.path, furnished.clock, Tokens(), ZONES) as tx:
                    note(tx, number)
            seen.append(int.from_bytes(index.read_bytes()[8:12], "big"))
        log = tmp_path.joinpath("live.db-wal").stat().st_size
        assert oct(index.stat().st_mode & 0o777) == "0o600"
    finally:
        await database.close()

    assert seen == sorted(set(seen))
    assert seen[-1] == (log - 32) // (FRAME + PAGE)
    assert [path.name for path in tmp_path.iterdir()] == ["live.db"], "a good end leaves no mark"


def test_a_byte_of_a_backup_is_found_and_the_good_one_stays(tmp_path):
    box = a_box_with_guests(tmp_path, guests=10)
    draw, maker = random.Random(7), a_maker(box)
    path, _ = maker.make()
    whole, hurt = path.read_bytes(), tmp_path / "hurt.venuebox-backup"
    key = parse_recovery_key(KEY_TEXT)
    damaged = [whole[:n] for n in (0, 10, 500, len(whole) // 2, len(whole) - 16, len(whole) - 1)]
    for _ in range(30):
        changed = bytearray(whole)
        changed[draw.randrange(len(whole))] ^= 1 << draw.randrange(8)
        damaged.append(bytes(changed))

    for content in damaged:
        hurt.write_bytes(content)
        with pytest.raises(OperatorError), open_backup(hurt) as file:
            prove(file, key, tmp_path, box.clock, ZONES)

    root = pages_by_kind(box.root / "live.db")["table"][3]
    flip(box.root / "live.db", (root - 1) * PAGE + PAGE // 2, 2)
    with pytest.raises(OperatorError, match="damaged"):
        maker.make()
    assert [each.name for each in path.parent.iterdir()] == [path.name]
