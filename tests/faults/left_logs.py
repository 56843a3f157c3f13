"""What a killed box leaves of a database: the file, its log and the watermark."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from appliance.clock import newest_zone_database
from appliance.store.database import Database
from appliance.tokens import Tokens

FRAME, PAGE = 24, 4096
ZONES = newest_zone_database()


@dataclass
class Left:
    """The files of a killed box, and where the frames of its last commit begin and end."""

    folder: Path
    files: dict[str, bytes]
    last: range

    @property
    def path(self):
        return self.folder / "live.db"

    def put(self, **changed):
        """Put the files there, but for those that changed; None: it is missing."""
        for each in self.folder.glob("live.db*"):
            each.unlink()
        for name, content in (self.files | changed).items():
            if content is not None:
                self.folder.joinpath(f"live.db{name}").write_bytes(content)

    def put_with_flip(self, at, bit, name="-wal"):
        changed = bytearray(self.files[name])
        changed[at] ^= 1 << bit
        self.put(**{name: bytes(changed)})
        return bytes(changed)

    def starts_of_frames(self):
        return range(self.last.start, self.last.stop, FRAME + PAGE)


def note(tx, number):
    tx.execute("UPDATE venue SET request_expiry_hours = :n", {"n": number + 1})
    for name in ("Salma", "Youssef", "Imane"):
        tx.insert(
            "staff",
            {"id": tx.new_id(), "name": f"{name} {number}", "role": "door", "created_at": number},
        )


async def leave(source, folder, clock, commits):
    """Write so many commits, and take the files while the database is open."""
    path = folder / "live.db"
    shutil.copy(source, path)
    database = Database(path, clock, Tokens(), ZONES)
    log = path.with_name("live.db-wal")
    try:
        for number in range(commits):
            before = log.stat().st_size
            await database.write(note, number)
        names = ("", "-wal", "-watermark")
        files = {name: path.with_name(f"live.db{name}").read_bytes() for name in names}
    finally:
        await database.close()
    return Left(folder, files, range(max(before, 32), len(files["-wal"])))
