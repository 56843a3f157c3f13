"""A byte that changes in the last commit of a log is no torn write: it was acknowledged (F9).

What a killed box leaves is copied while it runs. Then a byte changes, or the watermark does, or
somebody else has had the files in hand.
"""

import asyncio
import random
import shutil

import apsw
import pytest

from appliance.errors import Trouble
from appliance.store.connection import open_connection
from appliance.store.database import Database
from appliance.store.session import session
from appliance.store.start_check import check_before_serving
from appliance.store.watermark import FilesBeside, Watermark, count_missing_frames
from appliance.tokens import Tokens
from tests.appliance.backup.making import a_box_with_guests
from tests.faults.left_logs import FRAME, PAGE, ZONES, leave, note

FOUNDED_WITH = 24  # hours until a request expires
LOST = r"live\.db is damaged \(its log (lacks|holds) .* venuebox restore --latest"


@pytest.fixture(scope="module")
def furnished(tmp_path_factory):
    return a_box_with_guests(tmp_path_factory.mktemp("box"), guests=20)


@pytest.fixture(params=[1, 2, 12], ids=lambda n: f"{n} commits")
def left(request, furnished, tmp_path):
    made = asyncio.run(leave(furnished.root / "live.db", tmp_path, furnished.clock, request.param))
    assert len(made.starts_of_frames()) > 1
    return made


def places(left, draw):
    """In each frame each field of its head, the page, the page's checksum; and at random."""
    for start in left.starts_of_frames():
        yield from range(start, start + FRAME, 4)
        yield from (start + FRAME, start + FRAME + PAGE // 2, start + FRAME + PAGE - 1)
    for _ in range(100):
        yield draw.randrange(left.last.start, left.last.stop)


@pytest.mark.proves("I7", "G5")
def test_a_byte_of_the_last_commit_of_a_log_is_found(left):
    draw = random.Random(9)
    for at in places(left, draw):
        hurt = left.put_with_flip(at, draw.randrange(8))

        with pytest.raises(Trouble, match=LOST):
            check_before_serving(left.path)

        assert left.path.with_name("live.db-wal").read_bytes() == hurt, "the evidence was touched"
        assert left.path.read_bytes() == left.files[""]


def test_a_byte_of_the_head_of_a_log_is_found_however_short_the_log(left):
    for at in range(32):
        left.put_with_flip(at, at % 8)

        with pytest.raises(Trouble, match=LOST):
            check_before_serving(left.path)


def test_without_the_watermark_the_box_goes_on_with_what_can_be_read(left):
    """The owner's last resort, as docs/operations/backup.md has it."""
    newest = hours_of(left)
    left.put_with_flip(left.last.stop - 100, 3)
    left.path.with_name("live.db-watermark").unlink()

    check_before_serving(left.path)

    assert hours(left.path) == (newest - 1 or FOUNDED_WITH)


def test_a_log_that_ends_too_early_is_found(left):
    log = left.files["-wal"]
    for length in (len(log) - 1, left.last.start, 33, 32):
        left.put(**{"-wal": log[:length]})

        with pytest.raises(Trouble, match=LOST):
            check_before_serving(left.path)


def test_a_command_writes_nothing_over_a_damaged_log(left, furnished):
    hurt = left.put_with_flip(left.last.stop - 100, 3)

    with (
        pytest.raises(Trouble, match=LOST),
        session(left.path, furnished.clock, Tokens(), ZONES) as tx,
    ):
        note(tx, 7)

    assert left.path.with_name("live.db-wal").read_bytes() == hurt
    assert left.path.read_bytes() == left.files[""]


def hours(path):
    connection = open_connection(path)
    try:
        return next(connection.execute("SELECT request_expiry_hours FROM venue"))[0]
    finally:
        connection.close()


def test_a_sound_log_is_served_whatever_became_of_the_watermark(left):
    newest = hours_of(left)
    mark = left.files["-watermark"]
    for other in (
        None, b"", mark[:9], bytes(16), mark + b"more",
        *(mark[:at] + bytes([mark[at] ^ 4]) + mark[at + 1 :] for at in range(16)),
    ):  # fmt: skip
        left.put(**{"-watermark": other})

        check_before_serving(left.path)

        assert hours(left.path) == newest


def hours_of(left):
    left.put()
    check_before_serving(left.path)
    return hours(left.path)


def test_a_commit_that_a_power_cut_tore_is_no_damage(left, furnished):
    """It came after the watermark: nobody was told of it."""
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


def test_a_log_that_was_folded_cut_begun_anew_or_taken_away_is_no_damage(left, furnished):
    mark = left.files["-watermark"]
    watermark = left.path.with_name("live.db-watermark")

    left.put()
    with session(left.path, furnished.clock, Tokens(), ZONES) as tx:  # the last one folds it
        note(tx, 50)
    watermark.write_bytes(mark)
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
    """As its command line: no checksums, its own checkpoints, perhaps another journal."""
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


class BeginningAnew:
    """What SQLite says between emptying its index of a log and writing the log's new head."""

    def wal_checkpoint(self, _name, _mode):
        return 0, 0


def test_a_log_that_somebody_is_about_to_begin_anew_is_no_damage(left):
    left.put()

    assert count_missing_frames(BeginningAnew(), FilesBeside(left.path)) == 0


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

    assert seen == sorted(set(seen)), "each says more than the one before"
    assert seen[-1] == (log - 32) // (FRAME + PAGE), "and the last says all"


async def test_where_no_watermark_can_be_written_the_box_goes_on(furnished, tmp_path):
    shutil.copy(furnished.root / "live.db", tmp_path / "live.db")
    tmp_path.joinpath("live.db-watermark").mkdir()
    database = Database(tmp_path / "live.db", furnished.clock, Tokens(), ZONES)

    await database.write(note, 11)
    await database.close()

    check_before_serving(tmp_path / "live.db")
    assert hours(tmp_path / "live.db") == 12


async def test_a_box_that_stops_in_good_order_leaves_no_watermark(furnished, tmp_path):
    shutil.copy(furnished.root / "live.db", tmp_path / "live.db")
    database = Database(tmp_path / "live.db", furnished.clock, Tokens(), ZONES)
    await database.write(note, 3)
    assert tmp_path.joinpath("live.db-watermark").exists()

    await database.close()

    assert [path.name for path in tmp_path.iterdir()] == ["live.db"]


def test_files_that_come_and_go_are_none(tmp_path):
    connection = apsw.Connection(":memory:")

    Watermark(connection, FilesBeside(tmp_path / "live.db")).rise()

    assert list(tmp_path.iterdir()) == []
