"""Waiting for whoever else writes to a database: looking often, and not for ever."""

import time

import apsw

BUSY_SECONDS = 5.0
_AGAIN_SECONDS = 0.002


def wait_for_others(connection: apsw.Connection) -> None:
    """From now on it waits 5 s at most for another process's commit; then apsw.BusyError.

    SQLite's own waiting sleeps ever longer, up to 0.1 s: beside a process that writes without a
    pause it finds the moment between two commits after seconds, or never.
    """
    until = 0.0

    def look_again(before: int) -> bool:
        nonlocal until
        now = time.monotonic()
        if before == 0:
            until = now + BUSY_SECONDS
        if now >= until:
            return False
        time.sleep(_AGAIN_SECONDS)
        return True

    connection.set_busy_handler(look_again)
