"""What is wrong with a door log, and where."""

from dataclasses import dataclass, field

MOST = 100


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One sentence about one place. `line` counts from 1; it is 0 for the file as a whole."""

    line: int
    sentence: str


@dataclass(slots=True)
class Findings:
    """Findings in the order of their places: at most a hundred, a ruin is not worth more."""

    found: list[Finding] = field(default_factory=list)

    def add(self, line: int, sentence: str) -> None:
        """Note one more."""
        if len(self.found) < MOST:
            self.found.append(Finding(line, sentence))

    @property
    def full(self) -> bool:
        """Whether looking on is of no use."""
        return len(self.found) >= MOST

    def in_order(self) -> list[Finding]:
        """By line; of one line in the order in which they were noted."""
        return sorted(self.found, key=lambda finding: finding.line)
