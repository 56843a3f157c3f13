"""The single writer: refused actions are rolled back, and only durable commits are acknowledged."""

import asyncio
import math
import threading
import time
from types import SimpleNamespace

import apsw
import pytest

from appliance.core.errors import TableTaken, Unavailable
from appliance.database import connection as waiting
from appliance.database import writer as writer_module
from appliance.database.connection import Reader, Transaction, check_engine, open_connection
from appliance.database.database import Database
from appliance.database.integrity import session
from appliance.venue.model import list_closings


def note(tx: Transaction, name: str) -> str:
    tx.insert("staff", {"id": tx.new_id(), "name": name, "role": "door", "created_at": tx.now})
    tx.notices.append(name)
    return name


def note_and_refuse(tx: Transaction, name: str) -> None:
    note(tx, name)
    raise TableTaken


def names(reader: Reader) -> list[str]:
    return [name for (name,) in reader.rows("SELECT name FROM staff ORDER BY name")]


async def test_a_failed_action_is_rolled_back_alone_and_no_listener_is_called(
    database: Database,
):
    heard: list[object] = []
    database.on_commit(heard.extend)

    results = await asyncio.gather(
        database.write(note, "a"),
        database.write(note_and_refuse, "b"),
        database.write(note, "c"),
        return_exceptions=True,
    )

    assert results[0] == "a"
    assert isinstance(results[1], TableTaken)
    assert await database.read(names) == heard == ["a", "c"]


async def test_a_write_returns_only_after_the_change_is_on_disk(database: Database):
    await database.write(note, "kept")

    other = open_connection(database.path, writable=False)
    try:
        assert list(other.execute("SELECT name FROM staff")) == [("kept",)]
        assert other.pragma("synchronous") == 2
        assert other.pragma("journal_mode") == "wal"
    finally:
        other.close()


async def test_a_single_action_is_committed_in_the_event_loop_only_while_the_disk_is_fast(
    database: Database, monkeypatch
):
    threads = []
    database._writer_connection.set_commit_hook(
        lambda: bool(threads.append(threading.current_thread().name))
    )
    monkeypatch.setattr(writer_module, "_FAST_SECONDS", math.inf)
    await database.write(note, "Fast")
    assert threads[-1] == threading.main_thread().name

    await asyncio.gather(*(database.write(note, name) for name in ("Left", "Right")))
    assert threads[-1] == "writer"  # a batch is committed in a thread

    monkeypatch.setattr(writer_module, "_FAST_SECONDS", 0.0)
    await database.write(note, "Slow")
    assert threads[-1] == "writer"


def close_first_day(tx: Transaction, day: str, *, fails: bool = False) -> list[str]:
    """Add a closing day, and return all closing days as this transaction sees them."""
    list_closings(tx)
    values = {"id": tx.new_id(), "first_day": day, "last_day": day, "reason": ""}
    tx.insert("closing_day", values)
    seen = [closing.first for closing in list_closings(tx)]
    if fails:
        raise TableTaken
    return seen


async def test_the_cached_venue_data_follows_every_change(database: Database):
    async def closed() -> list[str]:
        return await database.write(lambda tx: [each.first for each in list_closings(tx)])

    assert await database.write(close_first_day, "2026-12-01") == ["2026-12-01"]
    assert await closed() == ["2026-12-01"]

    for others in ([], [closed()]):  # once alone and once in a batch
        refused = database.write(close_first_day, "2026-12-02", fails=True)
        with pytest.raises(TableTaken):
            await asyncio.gather(*others, refused)
        assert await closed() == ["2026-12-01"]

    with session(database.path, database.clock, database.tokens, database.zones) as tx:
        close_first_day(tx, "2026-12-03")
    assert len(database.peek(list_closings)) == 2
    assert await closed() == ["2026-12-01", "2026-12-03"]
    await database.write(lambda tx: tx.execute("DELETE FROM closing_day"))
    assert await closed() == []


async def test_a_write_to_a_full_queue_is_refused_immediately(database: Database, monkeypatch):
    monkeypatch.setattr(writer_module, "QUEUE_LIMIT", 3)

    outcomes = await asyncio.gather(
        *(database.write(note, f"n{i}") for i in range(6)), return_exceptions=True
    )

    refused = [o for o in outcomes if isinstance(o, Unavailable)]
    assert len(refused) == 3
    assert len(await database.read(names)) == 3


async def test_a_cancelled_write_does_not_stop_the_others(database: Database):
    impatient = asyncio.ensure_future(database.write(note, "a"))
    await asyncio.sleep(0)
    impatient.cancel()

    assert await database.write(note, "b") == "b"


async def test_a_write_while_another_process_holds_the_database_raises_unavailable(
    database: Database, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(waiting, "BUSY_SECONDS", 0.05)
    holder = apsw.Connection(str(database.path))
    holder.execute("BEGIN IMMEDIATE")
    try:
        with pytest.raises(Unavailable):
            await database.write(note, "a")
    finally:
        holder.execute("ROLLBACK")
        holder.close()

    assert await database.write(note, "b") == "b"
    assert await database.read(names) == ["b"]


@pytest.mark.parametrize(("version", "accepted"), [("3.51.2", False), ("3.51.3", True)])
def test_an_sqlite_version_with_the_wal_corruption_bug_is_refused(
    monkeypatch, version: str, accepted: bool
):
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: version)
    if accepted:
        check_engine()
        return
    with pytest.raises(Exception, match=r"3\.51\.3 or newer"):
        check_engine()


async def test_no_write_succeeds_after_a_disk_failure(database: Database, broken):
    outcomes = await asyncio.gather(
        database.write(note, "a"), database.write(fail), return_exceptions=True
    )

    assert all(isinstance(o, Unavailable) for o in outcomes)
    with pytest.raises(Unavailable):
        await database.write(note, "b")
    await asyncio.sleep(0.01)
    assert len(broken) == 1
    assert await database.read(names) == []
    assert database.peek(names) == []


def fail(_reader: Reader) -> None:
    raise apsw.IOError("disk I/O error")


def fail_and_end(reader: Reader) -> None:
    """Fail and end the transaction, as SQLite may do on a full disk."""
    reader.connection.execute("ROLLBACK")
    fail(reader)


@pytest.mark.parametrize("query", [fail, fail_and_end])
async def test_a_read_succeeds_after_earlier_reads_failed_because_of_the_disk(database, query):
    for _ in range(3):  # more than there are readers
        with pytest.raises(Unavailable):
            await database.read(query)
        with pytest.raises(Unavailable):
            database.peek(query)

    assert [await database.read(names) for _ in range(3)] == [[], [], []]
    assert database.peek(names) == []


async def test_a_closed_database_rejects_calls_and_leaves_no_wal_file(database: Database, path):
    await database.write(note, "a")

    await database.close()

    with pytest.raises(Unavailable):
        await database.write(note, "b")
    with pytest.raises(Unavailable):
        database.peek(names)
    assert not path.with_name("live.db-wal").exists()


async def test_queued_writes_are_finished_before_the_box_stops(database: Database):
    writes = [asyncio.ensure_future(database.write(note, f"n{i:03d}")) for i in range(100)]
    await asyncio.sleep(0)

    await database.close()

    assert len(await asyncio.gather(*writes)) == 100


def test_a_locked_database_is_tried_again_every_two_milliseconds(path, monkeypatch):
    slept = []

    def sleep(seconds):
        slept.append(seconds)
        if len(slept) == 50:
            holder.execute("COMMIT")

    monkeypatch.setattr(waiting, "time", SimpleNamespace(monotonic=time.monotonic, sleep=sleep))
    holder, waiter = open_connection(path), open_connection(path)
    holder.execute("BEGIN IMMEDIATE")

    waiter.execute("INSERT INTO heartbeat (id, at) VALUES (1, 0)")

    holder.close()
    waiter.close()
    assert slept == [0.002] * 50
