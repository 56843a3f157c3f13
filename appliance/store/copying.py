"""Copying a database into a file of its own, whole and consistent, each page with its checksum.

Two writes, and for good reason. `VACUUM INTO` leaves out what was deleted, which a copy page by
page would carry along. But the pages that it must write before the first one, because its cache
is full, get no checksum: SQLite learns from the first page that there are any. So its file is
copied again, page by page, into one that has its first page already.
"""

from contextlib import closing
from pathlib import Path

import apsw

from appliance.store.connection import lay_out_pages
from appliance.store.unusable import quota_as_full

_WITHOUT_CHECKSUMS = "unix"


def write_copy(connection: apsw.Connection, copy: Path) -> None:
    """Write `copy`, 0600, as the database is now; who writes to it meanwhile is not held up.

    It takes twice the database's size on the volume of `copy`, and hardly any memory however
    large it is. apsw.Error when a page is damaged, or when there is no room; then nothing is left.
    """
    bare = copy.with_name(f"{copy.name}.bare")
    try:
        with quota_as_full(connection):
            connection.execute("VACUUM INTO :copy", {"copy": str(bare)})
        bare.chmod(0o600)
        _copy_pages(bare, copy)
    except BaseException:
        copy.unlink(missing_ok=True)
        raise
    finally:
        bare.unlink(missing_ok=True)


def _copy_pages(bare: Path, copy: Path) -> None:
    source = apsw.Connection(str(bare), flags=apsw.SQLITE_OPEN_READONLY, vfs=_WITHOUT_CHECKSUMS)
    with closing(source), closing(apsw.Connection(str(copy))) as target:
        copy.chmod(0o600)
        lay_out_pages(target, source.pragma("page_size"))
        target.pragma("journal_mode", "off")  # nobody relies on it before it is whole
        target.pragma("synchronous", "off")
        target.execute("CREATE TABLE first_page(content)")
        with quota_as_full(target), target.backup("main", source, "main") as pages:
            pages.step()
