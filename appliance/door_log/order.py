"""Which scans of a door log are missing, out of order or there twice."""

from dataclasses import dataclass
from typing import Literal

from appliance.door_log.findings import Findings

Place = Literal["follows", "ahead", "late"]


@dataclass(slots=True)
class _Gap:
    first: int
    last: int
    line: int


class Order:
    """Follows the numbers of the scans as they come, from the number `expected` on.

    A line that cannot be believed may stand for the scan that was due, or have been slipped
    in: `doubtful` counts such lines since the last good one, and both are allowed for.
    """

    def __init__(self, expected: int, findings: Findings) -> None:
        self._expected = expected
        self._doubtful = 0
        self._gaps: list[_Gap] = []
        self._findings = findings

    def doubt(self) -> None:
        """A line came whose number cannot be believed."""
        self._doubtful += 1

    def take(self, seq: int, line: int) -> Place:
        """A good line came: whether it follows, leaves a gap before it (ahead), or is late."""
        if seq < self._expected:
            self._note_late(seq, line)
            return "late"
        follows = seq <= self._expected + self._doubtful
        if not follows:
            self._gaps.append(_Gap(self._expected + self._doubtful, seq - 1, line))
        self._expected, self._doubtful = seq + 1, 0
        return "follows" if follows else "ahead"

    @property
    def gaps(self) -> int:
        """How many stretches are missing so far."""
        return len(self._gaps)

    def end(self, last: int | None, line: int) -> None:
        """No line follows, and `last` should have been the last scan: note what is missing."""
        if last is not None and last >= self._expected + self._doubtful:
            self._gaps.append(_Gap(self._expected + self._doubtful, last, line))
        for gap in self._gaps:
            one = gap.first == gap.last
            which = f"scan {gap.first} was" if one else f"scans {gap.first} to {gap.last} were"
            self._findings.add(gap.line, f"{which} removed before it")

    def _note_late(self, seq: int, line: int) -> None:
        for gap in self._gaps:
            if gap.first <= seq <= gap.last:
                self._findings.add(line, f"scan {seq} stands out of order")
                self._gaps.remove(gap)
                parts = _Gap(gap.first, seq - 1, gap.line), _Gap(seq + 1, gap.last, gap.line)
                self._gaps += [part for part in parts if part.first <= part.last]
                return
        self._findings.add(line, f"scan {seq} was added: it stands before already")
