"""Wiping: nothing that was erased is left between the rows of a database, nor in its WAL.

`secure_delete` overwrites what is freed, but not the copies that stay in a page when its rows
move to another one. Only a file that is written anew has none of them.
"""

from pathlib import Path

import apsw

from appliance.store.connection import open_connection

_TRIES = 5


def wipe(path: Path) -> bool:
    """Write the file anew and cut its WAL; False when others were in the way: try later.

    Whoever writes meanwhile waits: about a second for 100 MB. Call it from a thread.
    """
    connection = open_connection(path)
    try:
        connection.execute("VACUUM")
        for _ in range(_TRIES):
            busy, *_sizes = next(connection.execute("PRAGMA wal_checkpoint(TRUNCATE)"))
            if not busy:
                return True
    except (apsw.BusyError, apsw.LockedError, apsw.FullError):
        return False
    finally:
        connection.close()
    return False
