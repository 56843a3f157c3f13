"""Commits and checkpoints on a box's file as fast as they go, beside the box itself.

`python -m tests.faults.hammering DATABASE SECONDS NAME`: each round is one committed row of the
security log, by the same code as every command's, and a checkpoint of whichever kind, RESTART and
TRUNCATE among them: those begin the log anew under whoever writes. Each row's number is printed
once it is committed, and at the end how often the log was begun anew. A command that found the
database in use for its five seconds has changed nothing: its number is not printed. On a busy
machine it goes on until it did both a few times, for a minute at most.
"""

import random
import sys
import time
from pathlib import Path

import apsw

from appliance.actions.note_security import note_security
from appliance.clock import SystemClock, newest_zone_database
from appliance.errors import Trouble
from appliance.store.connection import open_connection
from appliance.store.session import session
from appliance.tokens import Tokens

ANEW = (apsw.SQLITE_CHECKPOINT_RESTART, apsw.SQLITE_CHECKPOINT_TRUNCATE)
LEAST, AT_MOST = 3, 60.0
KINDS = (apsw.SQLITE_CHECKPOINT_PASSIVE, apsw.SQLITE_CHECKPOINT_FULL, *ANEW)


def main(path, seconds, name):
    path, draw, number = Path(path), random.Random(name), 0
    committed = resets = 0
    clock, zones = SystemClock(), newest_zone_database()
    folder = open_connection(path)
    begun = time.monotonic()
    until, last = begun + float(seconds), begun + max(float(seconds), AT_MOST)
    while time.monotonic() < (until if min(committed, resets) >= LEAST else last):
        number += 1
        try:
            with session(path, clock, Tokens(), zones) as tx:
                note_security(tx, name, "hammered", number=number)
        except Trouble as trouble:
            if "in use all the time: nothing was changed" not in str(trouble):
                raise
            continue
        committed += 1
        print(number, flush=True)
        kind = draw.choice(KINDS)
        try:
            folder.wal_checkpoint(mode=kind)
        except apsw.BusyError:
            continue  # somebody reads or writes: the next one will do
        resets += kind in ANEW
    print(resets)


if __name__ == "__main__":
    main(*sys.argv[1:])
