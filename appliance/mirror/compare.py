"""Compare the mirror with the box: the number of rows and the digest of each table."""

import asyncio
import hashlib
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from appliance.core.errors import OperatorError
from appliance.core.settings import MirrorSettings
from appliance.database.connection import Reader
from appliance.mirror.changes import count_rows, find_state, find_waiting
from appliance.mirror.server import connected
from appliance.mirror.tables import TABLES, Table, select_texts
from appliance.venue.model import get_venue

_TRIES, _TRY_SECONDS = 20, 0.5  # number of attempts, because the box keeps copying meanwhile


@dataclass(frozen=True, slots=True)
class Compared:
    """A table, its number of rows in the box and the mirror, and whether all rows are equal."""

    name: str
    here: int
    there: int
    is_equal: bool


def compare(
    snapshot: Callable[[], AbstractContextManager[Reader]], settings: MirrorSettings
) -> tuple[list[Compared], int]:
    """Compare each table. Also return the number of rows not copied yet, which are left out.

    `snapshot` opens a snapshot of the live database. Raises Trouble if the mirror cannot be read,
    and OperatorError if there is nothing to compare yet.
    """
    for _ in range(_TRIES):
        with snapshot() as reader:
            state = find_state(reader)
            if state is None:
                raise OperatorError("The box fills no mirror yet. Restart it, then check again.")
            at = state.position
            if at.copying:
                raise OperatorError(
                    f"The mirror is being filled: {at.copied} of {count_rows(reader)} rows. Check "
                    "again later."
                )
            waiting = find_waiting(reader, at.carried)
            venue_id = get_venue(reader).id
            there = asyncio.run(_ask(settings.url, venue_id, state.token, waiting))
            if there is not None:
                rows = [_compare(reader, t, settings, waiting, there[t.name]) for t in TABLES]
                return rows, sum(map(len, waiting.values()))
        time.sleep(_TRY_SECONDS)
    raise OperatorError(
        "The mirror is in a state that this box does not know. A running box notices that at its "
        "next start, and copies everything. To begin at once, restart the box."
    )


async def _ask(
    url: str, venue_id: str, token: str, waiting: dict[str, list[str]]
) -> dict[str, tuple[int, str]] | None:
    async with connected(url) as session:
        return await session.digests(venue_id, token, waiting)


def _compare(
    reader: Reader, table: Table, settings: MirrorSettings, waiting: dict[str, list[str]],
    there: tuple[int, str],
) -> Compared:  # fmt: skip
    left_out, count, whole = set(waiting.get(table.name, ())), 0, _md5()
    for key, text in reader.rows(select_texts(table, contacts=settings.contacts)):
        if str(key) not in left_out:
            count += 1
            whole.update(_md5(text.encode()).hexdigest().encode())
    return Compared(table.name, count, there[0], (count, whole.hexdigest()) == there)


def _md5(data: bytes = b"") -> "hashlib._Hash":
    return hashlib.md5(data, usedforsecurity=False)  # what PostgreSQL has without extensions
