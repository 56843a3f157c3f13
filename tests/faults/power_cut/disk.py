"""A disk that forgets: what was not synced when the power goes may be lost, torn or kept."""

import random
from dataclasses import dataclass, field

SECTOR = 512


class PowerIsGone(Exception):
    """The disk was asked for something after the cut."""


@dataclass
class DiskFile:
    """`durable` is what a sync has made certain, `live` what a reader sees."""

    durable: bytearray = field(default_factory=bytearray)
    live: bytearray = field(default_factory=bytearray)
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)

    def write(self, offset: int, data: bytes) -> None:
        put(self.live, offset, data)
        self.pending.append((offset, data))

    def truncate(self, size: int) -> None:
        resize(self.live, size)
        self.pending.append((size, None))

    def sync(self) -> None:
        self.durable = bytearray(self.live)
        self.pending.clear()

    def after_a_cut(self, draw: random.Random) -> bytearray:
        """Every operation since the last sync happened, or did not, or a part of it did."""
        survived = bytearray(self.durable)
        for offset, data in self.pending:
            fate = draw.choice(("lost", "torn", "kept"))
            if fate == "lost":
                continue
            if data is None:
                resize(survived, offset)
            elif fate == "kept":
                put(survived, offset, data)
            else:
                tear(survived, offset, data, draw)
        return survived


class Disk:
    """Files by name. After `cut_after` operations that change it, nothing works any more."""

    def __init__(self, files: dict[str, bytes] | None = None, cut_after: int | None = None) -> None:
        self.files = {
            name: DiskFile(bytearray(data), bytearray(data)) for name, data in (files or {}).items()
        }
        self.changes = 0
        self.is_dead = False
        self._cut_after = cut_after

    def change(self) -> None:
        """Before each change: the power may go."""
        self.look()
        self.changes += 1
        if self._cut_after is not None and self.changes > self._cut_after:
            self.is_dead = True
            raise PowerIsGone

    def look(self) -> None:
        if self.is_dead:
            raise PowerIsGone

    def after_a_cut(self, draw: random.Random) -> dict[str, bytes]:
        """What the next start finds."""
        return {name: bytes(file.after_a_cut(draw)) for name, file in self.files.items()}


def put(target: bytearray, offset: int, data: bytes) -> None:
    if len(target) < offset:
        target.extend(bytes(offset - len(target)))
    target[offset : offset + len(data)] = data


def resize(target: bytearray, size: int) -> None:
    if len(target) > size:
        del target[size:]
    else:
        target.extend(bytes(size - len(target)))


def tear(target: bytearray, offset: int, data: bytes, draw: random.Random) -> None:
    """Sector by sector, of which each is the old or the new one."""
    start = 0
    while start < len(data):
        end = min(len(data), start + SECTOR - (offset + start) % SECTOR)
        if draw.random() < 0.5:
            put(target, offset + start, data[start:end])
        start = end
