"""The bridge's own SQLite file: every scan, before its verdict is shown, and the snapshot.

One connection holds the file for itself. A scan's life: noted (`result` NULL), decided and
shown (`result`), settled (the box has it), counted (the snapshot knows of it).
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
    seq INTEGER PRIMARY KEY AUTOINCREMENT,  -- the order in which the box hears of them
    scan_id TEXT NOT NULL UNIQUE,
    code TEXT NOT NULL,
    at INTEGER NOT NULL,                    -- ms since 1970 by the box's clock
    result TEXT,                            -- what was shown; NULL: nothing yet
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
# A code shown again so soon after a crash is the scan that was never answered.
_UNANSWERED_MS = 10 * 60_000
_KEPT_MS = 7 * 24 * 3600_000


@dataclass(frozen=True, slots=True)
class Spooled:
    """A scan that the box has yet to hear of."""

    scan_id: str
    code: str
    at: int
    result: str
    reservation_id: str | None = None  # whom it was taken for
    admitted: int = 0


class Spool:
    """The open file. Every change is on the disk when its call returns."""

    def __init__(self, connection: aiosqlite.Connection) -> None:
        self._connection = connection
        self._turn = asyncio.Lock()

    async def note(self, scan_id: str, code: str, at: int) -> str:
        """Remember that `code` was read, before anything else; the id to decide it under.

        That is `scan_id`, unless the same code was noted before a crash and never answered:
        the box may have decided it then, and gives the same answer under the same id.
        """
        found = await self._rows(
            """SELECT scan_id FROM scan WHERE result IS NULL AND code = ? AND at > ?
               ORDER BY seq DESC LIMIT 1""",
            (code, at - _UNANSWERED_MS),
        )
        if found:
            return str(found[0][0])
        insert = "INSERT INTO scan (scan_id, code, at) VALUES (?, ?, ?)"
        await self._change((insert, (scan_id, code, at)))
        return scan_id

    async def decide(
        self, scan_id: str, result: str, reservation_id: str | None, admitted: int, *, settled: bool
    ) -> None:
        """Remember what will be shown. `settled`: the box itself decided."""
        update = """UPDATE scan SET result = ?, reservation_id = ?, admitted = ?, settled = ?
                    WHERE scan_id = ?"""
        await self._change((update, (result, reservation_id, admitted, int(settled), scan_id)))

    async def list_open(self, limit: int) -> list[Spooled]:
        """What was shown and the box has not heard of, oldest first."""
        rows = await self._rows(
            """SELECT scan_id, code, at, result, reservation_id, admitted FROM scan
               WHERE settled = 0 AND result IS NOT NULL ORDER BY seq LIMIT ?""",
            (limit,),
        )
        return [Spooled(*row) for row in rows]

    async def settle(self, remarks: Iterable[tuple[str, str | None]]) -> None:
        """The box has these scans: (scan id, remark)."""
        update = "UPDATE scan SET settled = 1, remark = ? WHERE scan_id = ?"
        await self._change(*((update, (remark, scan_id)) for scan_id, remark in remarks))

    async def list_settled(self) -> list[int]:
        """What the box has, and a snapshot made from now on will know of."""
        rows = await self._rows("SELECT seq FROM scan WHERE settled = 1 AND counted = 0")
        return [row[0] for row in rows]

    async def keep_snapshot(self, signed: dict[str, Any], counted: list[int], at: int) -> None:
        """Replace the snapshot by one that knows of the scans `counted`; forget the oldest."""
        await self._change(
            *(("UPDATE scan SET counted = 1 WHERE seq = ?", (seq,)) for seq in counted),
            ("DELETE FROM scan WHERE counted = 1 AND at < ?", (at - _KEPT_MS,)),
            ("INSERT OR REPLACE INTO kept VALUES ('snapshot', ?)", (json.dumps(signed),)),
        )

    async def find_snapshot(self) -> dict[str, Any] | None:
        """The signed snapshot as the box sent it."""
        found = await self._rows("SELECT value FROM kept WHERE name = 'snapshot'")
        signed: dict[str, Any] | None = json.loads(found[0][0]) if found else None
        return signed

    async def forget_snapshot(self) -> None:
        """A bridge that was revoked knows nobody any more."""
        await self._change(("DELETE FROM kept WHERE name = 'snapshot'", ()))

    async def count_arrived(self) -> dict[str, int]:
        """People let in here that the snapshot does not know of, by reservation."""
        rows = await self._rows(
            """SELECT reservation_id, sum(admitted) FROM scan
               WHERE counted = 0 AND admitted > 0 GROUP BY reservation_id"""
        )
        return {row[0]: row[1] for row in rows}

    async def count_waiting(self) -> int:
        """How many scans the box has yet to hear of."""
        rows = await self._rows(
            "SELECT count(*) FROM scan WHERE settled = 0 AND result IS NOT NULL"
        )
        return int(rows[0][0])

    async def close(self) -> None:
        """Close the file; aiosqlite's thread would keep the process alive."""
        await self._connection.close()

    async def _rows(self, sql: str, values: tuple[Any, ...] = ()) -> list[Any]:
        async with self._turn:
            return list(await self._connection.execute_fetchall(sql, values))

    async def _change(self, *statements: tuple[str, tuple[Any, ...]]) -> None:
        """All of them or none. Whoever waits may be cancelled, the transaction is not."""
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
    """Open or make the file. The caller closes it."""
    connection = await aiosqlite.connect(path, isolation_level=None)
    try:
        # Alone with the file: no other process can read it half way, or check it point.
        await connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        await connection.execute("PRAGMA journal_mode = WAL")
        await connection.execute("PRAGMA synchronous = FULL")
        await connection.executescript(_SCHEMA)
    except BaseException:
        await connection.close()
        raise
    return Spool(connection)
