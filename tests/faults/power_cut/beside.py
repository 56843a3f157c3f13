"""The log on a forgetful disk, and the watermark, of which a cut may leave any that ever was."""

from tests.faults.power_cut.disk import Disk, PowerIsGone

LOG = "live.db-wal"


class Beside:
    """What `FilesBeside` is on a disk that works."""

    def __init__(self, disk: Disk, marks: list[bytes]) -> None:
        """`marks` grows by each that is written; the last is the one that is read."""
        self._disk = disk
        self._marks = marks

    def read_head(self) -> bytes:
        return self.read_log()[:32]

    def read_log(self) -> bytes:
        self._look()
        if LOG not in self._disk.files:
            raise FileNotFoundError(LOG)
        return bytes(self._disk.files[LOG].live)

    def read_mark(self) -> bytes:
        return self._marks[-1]

    def write_mark(self, mark: bytes) -> None:
        self._look()
        self._marks.append(mark)

    def _look(self) -> None:
        try:
            self._disk.look()
        except PowerIsGone:
            raise OSError("the power is gone") from None
