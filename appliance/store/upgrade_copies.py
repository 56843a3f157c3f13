"""The plain copy of a database that is kept before its schema changes: the way back without a key.

Beside the sealed backup, and in its stead where none can be made.
"""

import re
from pathlib import Path

import apsw

from appliance.clock import Clock
from appliance.durable import sync
from appliance.errors import Trouble
from appliance.store.copying import write_copy

_KEPT = 2  # schemas, of each the latest copy
_NAME = re.compile(r"(live|test)-before-upgrade-(\d{4})-(\d+)\.db")


def keep_copy(connection: apsw.Connection, path: Path, schema: int, clock: Clock) -> None:
    """Put a whole, consistent copy into `backups/` beside the database, and let old ones go.

    Trouble when there is no room for it, and then nothing is left over and none has gone.
    """
    folder = path.parent / "backups"
    copy = folder / f"{path.stem}-before-upgrade-{schema:04d}-{clock.now()}.db"
    aside = folder / f".{copy.name}.part"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        for left in folder.glob(f".{path.stem}-before-upgrade-*.part*"):  # of an interruption
            left.unlink()
        try:
            write_copy(connection, aside)
            sync(aside)
            aside.replace(copy)
        except BaseException:
            aside.unlink(missing_ok=True)
            raise
        sync(folder)
    except (apsw.FullError, apsw.CantOpenError, OSError) as error:
        size = path.stat().st_size // (1 << 20) + 1
        raise Trouble(
            f"{path.name} is not upgraded: there must be a copy first, and it could not be put "
            f"into {folder} ({error}). Make {2 * size} MiB of room there, then start again; "
            "nothing was changed"
        ) from None
    _let_go(folder, path.stem)


def list_copies(folder: Path, stem: str) -> list[tuple[int, int, Path]]:
    """Schema, ms since 1970 and path of each copy of `live` or `test`, the latest first."""
    named = ((_NAME.fullmatch(path.name), path) for path in folder.glob(f"{stem}-*.db"))
    found = [(int(match[2]), int(match[3]), path) for match, path in named if match]
    return sorted(found, reverse=True)


def forget_copies(folder: Path, before: int) -> None:
    """Delete those made before that instant, in ms: guests who are forgotten are still in them."""
    for stem in ("live", "test"):
        for _schema, made_at, path in list_copies(folder, stem):
            if made_at < before:
                path.unlink(missing_ok=True)


def _let_go(folder: Path, stem: str) -> None:
    schemas: list[int] = []
    for schema, _made_at, path in list_copies(folder, stem):
        if schema in schemas or len(schemas) == _KEPT:
            path.unlink(missing_ok=True)
        else:
            schemas.append(schema)
