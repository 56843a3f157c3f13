"""The rows of the door log for a thread: page by page, so that no snapshot is kept open."""

import asyncio
from collections.abc import Iterator

from appliance.store.connection import Reader
from appliance.store.database import Database
from appliance.store.scan_log import LoggedScan, Stretch, list_scans

_PAGE = 1000


def read_rows(
    database: Database, loop: asyncio.AbstractEventLoop, stretch: Stretch | None
) -> Iterator[LoggedScan]:
    """The rows of `stretch`; iterated in another thread than the loop's."""
    after = stretch.first - 1 if stretch else 0
    while stretch and after < stretch.last:
        reading = database.read(_page, after, stretch.last)
        page = asyncio.run_coroutine_threadsafe(reading, loop).result()
        yield from page
        after = page[-1].seq if page else stretch.last


def _page(reader: Reader, after: int, last: int) -> list[LoggedScan]:
    return list(list_scans(reader, after, last, _PAGE))
