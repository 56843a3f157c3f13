"""The bridge's SQLite file, which holds the snapshot and the scans.

Each scan is stored before its verdict is shown. It passes through four states: noted (`result` is
NULL), decided (`result` is set), settled (the box has processed the scan) and counted (the stored
snapshot includes the scan).
"""

import asyncio
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiosqlite

_SCHEMA = """
CREATE TABLE IF NOT EXISTS scan (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,  -- the order in which scans are sent to the box
    scan_id TEXT NOT NULL UNIQUE,
    code TEXT NOT NULL,
    at INTEGER NOT NULL,                    -- ms since 1970 by the box's clock
    result TEXT,                            -- the result shown; NULL until then
    reservation_id TEXT,
    admitted INTEGER NOT NULL DEFAULT 0,    -- people
    settled INTEGER NOT NULL DEFAULT 0,     -- 1: the box has it
    counted INTEGER NOT NULL DEFAULT 0,     -- 1: the snapshot was made after the box had it
    remark TEXT                             -- a conflict, or why the box refused it
) STRICT;
CREATE INDEX IF NOT EXISTS scan_open ON scan (seq) WHERE settled = 0;
CREATE INDEX IF NOT EXISTS scan_uncounted ON scan (seq) WHERE counted = 0;
CREATE TABLE IF NOT EXISTS kept (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
"""
# If a code is scanned again within this time, its undecided scan is resumed.
_CONTINUE_MS = 10 * 60_000
_RETENTION_MS = 7 * 24 * 3600_000


@dataclass(frozen=True, slots=True)
class SpooledScan:
    """A decided scan that has not been sent to the box yet. `at` is in ms since 1970."""

    scan_id: str
    code: str
    at: int
    result: str
    reservation_id: str | None = None  # the reservation that the code was matched to
    admitted: int = 0


class Spool:
    """The open SQLite file. When a method returns, its changes are on disk."""

    def __init__(self, connection: aiosqlite.Connection) -> None:
        self._connection = connection
        self._turn = asyncio.Lock()

    async def note(self, scan_id: str, code: str, at: int) -> str:
        """Store a scan of `code` before it is decided. Return the scan id to use.

        This is usually `scan_id`. If a crash left an undecided scan of the same code, return that
        scan's id instead. The box may already have decided that scan. If it receives the same id
        again, it repeats its verdict.
        """
        sql = """SELECT scan_id FROM scan WHERE result IS NULL AND code = ? AND at > ?
                 ORDER BY seq DESC LIMIT 1"""
        found = await self._rows(sql, (code, at - _CONTINUE_MS))
        if found:
            return str(found[0][0])
        insert = "INSERT INTO scan (scan_id, code, at) VALUES (?, ?, ?)"
        await self._change((insert, (scan_id, code, at)))
        return scan_id

    async def decide(
        self, scan_id: str, result: str, reservation_id: str | None, admitted: int, *, settled: bool
    ) -> None:
        """Store the result that will be shown. `settled` is true if the box decided the scan."""
        update = """UPDATE scan SET result = ?, reservation_id = ?, admitted = ?, settled = ?
                    WHERE scan_id = ?"""
        await self._change((update, (result, reservation_id, admitted, int(settled), scan_id)))

    async def list_open(self, limit: int) -> list[SpooledScan]:
        """List up to `limit` decided scans that the box does not have yet, oldest first."""
        sql = """SELECT scan_id, code, at, result, reservation_id, admitted FROM scan
                 WHERE settled = 0 AND result IS NOT NULL ORDER BY seq LIMIT ?"""
        return [SpooledScan(*row) for row in await self._rows(sql, (limit,))]

    async def correct(self, scan_ids: Iterable[str], ahead: int) -> None:
        """Add `ahead` (ms) to the times of these scans."""
        update = "UPDATE scan SET at = at + ? WHERE scan_id = ?"
        await self._change(*((update, (ahead, scan_id)) for scan_id in scan_ids))

    async def settle(self, remarks: Iterable[tuple[str, str | None]]) -> None:
        """Mark scans as settled. `remarks` contains pairs of scan id and remark."""
        update = "UPDATE scan SET settled = 1, remark = ? WHERE scan_id = ?"
        await self._change(*((update, (remark, scan_id)) for scan_id, remark in remarks))

    async def list_settled(self) -> list[int]:
        """Return the `seq` of each settled scan that the stored snapshot does not include."""
        rows = await self._rows("SELECT seq FROM scan WHERE settled = 1 AND counted = 0")
        return [row[0] for row in rows]

    async def keep_snapshot(self, signed: dict[str, Any], counted: list[int], at: int) -> None:
        """Store a new snapshot, mark the scans in `counted`, and delete old scans.

        `counted` contains `seq` values. Scans are deleted when they are counted and older than 7
        days. `at` is the current time in ms since 1970.
        """
        await self._change(
            *(("UPDATE scan SET counted = 1 WHERE seq = ?", (seq,)) for seq in counted),
            ("DELETE FROM scan WHERE counted = 1 AND at < ?", (at - _RETENTION_MS,)),
            ("INSERT OR REPLACE INTO kept VALUES ('snapshot', ?)", (json.dumps(signed),)),
        )

    async def find_snapshot(self) -> dict[str, Any] | None:
        """Return the signed snapshot as the box sent it, or None if none is stored."""
        found = await self._rows("SELECT value FROM kept WHERE name = 'snapshot'")
        signed: dict[str, Any] | None = json.loads(found[0][0]) if found else None
        return signed

    async def forget_snapshot(self) -> None:
        """Delete the snapshot, because a revoked bridge must not keep guest data."""
        await self._change(("DELETE FROM kept WHERE name = 'snapshot'", ()))

    async def count_arrived(self) -> dict[str, int]:
        """Return how many people this bridge has admitted, by reservation id.

        People whom the stored snapshot already counts are not included.
        """
        sql = """SELECT reservation_id, sum(admitted) FROM scan
                 WHERE counted = 0 AND admitted > 0 GROUP BY reservation_id"""
        return dict(await self._rows(sql))

    async def close(self) -> None:
        """Close the file and end aiosqlite's thread, which would keep the process alive."""
        await self._connection.close()

    async def _rows(self, sql: str, values: tuple[Any, ...] = ()) -> list[Any]:
        async with self._turn:
            return list(await self._connection.execute_fetchall(sql, values))

    async def _change(self, *statements: tuple[str, tuple[Any, ...]]) -> None:
        """Run the statements in one transaction. It completes even if the caller is cancelled."""
        await asyncio.shield(self._transact(statements))

    async def _transact(self, statements: tuple[tuple[str, tuple[Any, ...]], ...]) -> None:
        async with self._turn:
            await self._connection.execute("BEGIN IMMEDIATE")
            try:
                for sql, values in statements:
                    await self._connection.execute(sql, values)
                await self._connection.execute("COMMIT")
            except BaseException:
                await self._connection.execute("ROLLBACK")
                raise


async def open_spool(path: Path) -> Spool:
    """Open or create the file. The caller must close it."""
    connection = await aiosqlite.connect(path, isolation_level=None)
    try:
        # Prevent other processes from reading or checkpointing the file.
        await connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        await connection.execute("PRAGMA journal_mode = WAL")
        await connection.execute("PRAGMA synchronous = FULL")
        await connection.executescript(_SCHEMA)
    except BaseException:
        await connection.close()
        raise
    return Spool(connection)
